"""A language model on a server, as a contestant: ``https://HOST:PORT/v1:model=NAME:key_from=VARIABLE``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fairlap.errors import InvalidRequest
from fairlap.request.fields.server_address import ServerAddress, require_loopback, server_address
from fairlap.request.names import ContestantName
from fairlap.request.units import Seconds, require_within_a_day

MODEL, API, KEY_FROM, TIMEOUT = "model", "api", "key_from", "timeout"
_OPTIONS = (MODEL, API, KEY_FROM, TIMEOUT)
_TIMEOUT_S = 60.0
_EXAMPLE = "http://127.0.0.1:8000/v1:model=NAME"
_AT_AN_OPTION = re.compile(rf":(?=(?:{'|'.join(_OPTIONS)})=)")  # names of models have colons, too
_AN_OPTION = re.compile(r":([A-Za-z_]+)=")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CREDENTIAL = re.compile(r"[!-~]+")

Api = Literal["completions", "chat"]


@dataclass(frozen=True)
class StreamServer:
    """It does not hold the credential, only the name of the variable that does."""

    name: str  # as the user wrote it
    address: ServerAddress
    model: str
    api: Api
    key_from: str
    timeout_s: float  # of an answer

    @property
    def path(self) -> str:
        return self.address.path.rstrip("/")

    @property
    def endpoint(self) -> str:
        return f"{self.path}/{'chat/completions' if self.api == 'chat' else 'completions'}"


def stream_server(contestant: ContestantName, *, chat: bool, remote: bool) -> StreamServer:
    """Read a contestant. ``chat``: what its prompts are, which chooses the API unless an option does."""
    if not contestant.url:
        raise _refused(
            f"{contestant.text} is not the address of a server, and prompts are for servers; write {_EXAMPLE}"
        )
    url, *parts = _AT_AN_OPTION.split(contestant.text)
    options = dict(part.partition("=")[::2] for part in parts)
    if unknown := _AN_OPTION.search(" ".join((url.partition("//")[2], *options.values()))):
        raise _refused(f"a server that streams has no option {unknown[1]}=; it takes {', '.join(_OPTIONS)}")
    address = server_address(url, schemes=("http", "https"), example=_EXAMPLE)
    if not options.get(MODEL):
        raise _refused(f"{contestant.text} names no model; write {_EXAMPLE}")
    api = options.get(API, "chat" if chat else "completions")
    if api not in ("chat", "completions"):
        raise _refused(f"{API} must be chat or completions (got {api})")
    if chat and api == "completions":
        raise _refused("the completions API takes texts, and the prompts are chats; leave api= out")
    if not remote:
        require_loopback(contestant.text, address, "the prompts")
    timeout_s = float(Seconds(options.get(TIMEOUT, str(_TIMEOUT_S))))
    require_within_a_day(f"{TIMEOUT}=", timeout_s)
    server = StreamServer(
        contestant.text,
        address,
        options[MODEL],
        "chat" if api == "chat" else "completions",
        options.get(KEY_FROM, ""),
        timeout_s,
    )
    if server.key_from:
        credential_of(server)
        if address.scheme == "http" and not address.is_loopback:
            raise _refused(f"{contestant.text} would send a credential unencrypted to {address.host}; use https")
    return server


def credential_of(server: StreamServer, environment: Mapping[str, str] = os.environ) -> str:
    """Read it from its variable each time; empty where the server gets none."""
    name = server.key_from
    if not name:
        return ""
    if not _VARIABLE.fullmatch(name):
        raise _refused(f"{KEY_FROM} takes the name of an environment variable, such as OPENAI_API_KEY")
    value = environment.get(name, "")
    if not value:
        raise _refused(f"the environment variable {name}, which {KEY_FROM} names, is not set")
    if not _CREDENTIAL.fullmatch(value):
        raise _refused(f"the environment variable {name} has blanks or other letters than a credential has")
    return value


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="E_CONTESTANT")
