"""A language model as a contestant: ``https://HOST:PORT/v1:model=NAME:key_from=VARIABLE``, or a function that asks.

``grpc://HOST:PORT:model=NAME`` speaks KServe's protocol by gRPC, and ``grpcs://`` the same by TLS.

What ``serve:`` names is a server too, once fairlap has started it: ``started`` holds how.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fairlap.errors import InvalidRequest, shortened
from fairlap.frameworks.programs.imported_callable import imported_callable
from fairlap.frameworks.registry import framework_names
from fairlap.printable import one_line
from fairlap.request.fields.server_address import BY_GRPC, ServerAddress, require_loopback, server_address
from fairlap.request.fields.started_server import API, KEY_FROM, MODEL, OF_ANY_SERVER, SERVE, TIMEOUT
from fairlap.request.names import ContestantName
from fairlap.request.units import Seconds, require_within_a_day
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import Fields, Protocol
from fairlap.scenarios.streams.protocols.function import Ask, FunctionProtocol
from fairlap.scenarios.streams.protocols.kserve import KServeGenerate
from fairlap.scenarios.streams.protocols.kserve_grpc import KServeByGrpc
from fairlap.scenarios.streams.protocols.ollama import OllamaChat, OllamaGenerate
from fairlap.scenarios.streams.protocols.openai import Chat, Completions
from fairlap.scenarios.streams.protocols.tgi import TextGenerationInference
from fairlap.scenarios.streams.started.known_servers import IN_PROCESS
from fairlap.scenarios.streams.started.server_start import ServerStart, is_started, start_of
from fairlap.secrets import HIDDEN
from fairlap.suggestions import did_you_mean

_TIMEOUT_S = 60.0
_EXAMPLE = "http://127.0.0.1:8000/v1:model=NAME"
_AT_AN_OPTION = re.compile(rf":(?=(?:{'|'.join(OF_ANY_SERVER)})=)")  # names of models have colons, too
_AN_OPTION = re.compile(r":([A-Za-z_]+)=")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CREDENTIAL = re.compile(r"[!-~]+")

Api = Literal["completions", "chat", "tgi", "ollama", "ollama-chat", "kserve", "kserve-grpc", "function"]

PROTOCOLS: dict[Api, Protocol] = {
    "completions": Completions(),
    "chat": Chat(),
    "tgi": TextGenerationInference(),
    "ollama": OllamaGenerate(),
    "ollama-chat": OllamaChat(),
    "kserve": KServeGenerate(),
    "kserve-grpc": KServeByGrpc(),
    "function": FunctionProtocol(),
}
_NOT_BY_HTTP = ("kserve-grpc", "function")
_FOR_CHATS: dict[str, Api] = {"ollama": "ollama-chat"}


@dataclass(frozen=True)
class StreamServer:
    """It does not hold the credential, only the name of the variable that does."""

    name: str  # as the user wrote it
    address: ServerAddress | None  # None for a function
    model: str
    api: Api
    key_from: str
    timeout_s: float  # of an answer
    function: Ask | None = None
    start: ServerStart | None = None  # of one that fairlap starts

    @property
    def protocol(self) -> Protocol:
        return PROTOCOLS[self.api]

    def body(self, prompt: Prompt, tokens: int, fields: Fields) -> bytes:
        return self.protocol.body(self.model, prompt, tokens, fields)

    @property
    def is_by_grpc(self) -> bool:
        return self.api == "kserve-grpc"

    @property
    def subject(self) -> str:
        """Of a sentence."""
        return self.name if self.address is None or self.start else f"the server at {self.address.text}"

    def listening_on(self, port: int) -> StreamServer:
        """Return one that was started."""
        assert self.start is not None
        return replace(self, address=self.start.address(port))

    @property
    def why_no_certificate(self) -> str:
        """Empty where it has one."""
        if self.address is None:
            return "none, by a function"
        return "" if self.address.is_encrypted else f"none, by {self.address.scheme}"


def stream_server(contestant: ContestantName, *, chat: bool, remote: bool) -> StreamServer:
    """Read a contestant. ``chat``: what its prompts are, which chooses the API unless an option does."""
    if is_started(contestant):
        return _started(contestant, chat=chat)
    if not contestant.url:
        return _function(contestant)
    url, *parts = _AT_AN_OPTION.split(contestant.text)
    options = dict(part.partition("=")[::2] for part in parts)
    if unknown := _AN_OPTION.search(" ".join((url.partition("//")[2], *options.values()))):
        raise _refused(f"a server that streams has no option {unknown[1]}=; it takes {', '.join(OF_ANY_SERVER)}")
    address = server_address(url, schemes=("http", "https", *BY_GRPC), example=_EXAMPLE)
    api = _api_by_grpc(options, address, chat=chat) if address.is_by_grpc else _api_by_http(options, chat=chat)
    if PROTOCOLS[api].needs_model and not options.get(MODEL):
        raise _refused(f"{contestant.text} names no model; write {_EXAMPLE}")
    if not remote:
        require_loopback(contestant.text, address, "the prompts")
    server = StreamServer(
        contestant.text, address, options.get(MODEL, ""), api, options.get(KEY_FROM, ""), _timeout_s(options)
    )
    if server.key_from:
        credential_of(server)
        if not address.is_encrypted and not address.is_loopback:
            raise _refused(
                f"{contestant.text} would send a credential unencrypted to {address.host}; use https or grpcs"
            )
    return server


def _started(contestant: ContestantName, *, chat: bool) -> StreamServer:
    start, options = start_of(contestant), dict(contestant.options)
    api = _api_by_http(options, chat=chat)
    model = start.model or options.get(MODEL, "")
    if PROTOCOLS[api].needs_model and not model:
        raise _refused(f"{contestant.text} names no model; add {MODEL}=NAME, by which the server knows it")
    server = StreamServer(
        contestant.text,
        start.address(),
        model,
        api,
        options.get(KEY_FROM, ""),
        _timeout_s(options),
        start=start,
    )
    credential_of(server)
    return server


def _api_by_grpc(options: Mapping[str, str], address: ServerAddress, *, chat: bool) -> Api:
    if API in options:
        raise _refused(f"{API}= is of servers by http; by {address.scheme} only KServe's protocol is spoken")
    if address.path != "/":
        raise _refused(f"an address by {address.scheme} has no path (got {address.path}); name the model with {MODEL}=")
    if chat:
        raise _refused("KServe's protocol by gRPC takes texts, and the prompts are chats")
    return "kserve-grpc"


def _api_by_http(options: Mapping[str, str], *, chat: bool) -> Api:
    name = options.get(API, "chat" if chat else "completions")
    by_http = [each for each in PROTOCOLS if each not in _NOT_BY_HTTP]
    found = next((each for each in by_http if each == name), None)
    if found is None:
        raise _refused(f"{API} must be one of {', '.join(by_http)} (got {name})")
    api: Api = _FOR_CHATS.get(found, found) if chat else found
    if chat and not PROTOCOLS[api].takes_chats:
        raise _refused(f"{API}={api} takes texts, and the prompts are chats")
    return api


def _function(contestant: ContestantName) -> StreamServer:
    """Import ``package.module:function``. The names of frameworks are none of modules here."""
    options = dict(contestant.options)
    hint = did_you_mean(contestant.framework, (SERVE, *IN_PROCESS))
    if not contestant.variant or contestant.version or contestant.framework in framework_names():
        raise _refused(
            f"{contestant.text} is neither the address of a server nor a function that asks one; "
            + (hint or f"write {_EXAMPLE}, or package.module:function")
        )
    if unknown := {*options} - {TIMEOUT}:
        takes = f"; it takes {TIMEOUT}" + (f" ({hint})" if hint else "")
        raise _refused(f"a function that asks has no option {min(unknown)}={takes}")
    function = imported_callable(f"{contestant.framework}:{contestant.variant}")
    return StreamServer(contestant.text, None, "", "function", "", _timeout_s(options), function)  # type: ignore[arg-type]


def _timeout_s(options: Mapping[str, str]) -> float:
    timeout_s = float(Seconds(options.get(TIMEOUT, str(_TIMEOUT_S))))
    require_within_a_day(f"{TIMEOUT}=", timeout_s)
    return timeout_s


def credential_of(server: StreamServer) -> str:
    """Read it from its variable each time; empty where the server gets none."""
    name = server.key_from
    if not name:
        return ""
    if not _VARIABLE.fullmatch(name):
        raise _refused(f"{KEY_FROM} takes the name of an environment variable, such as OPENAI_API_KEY")
    value = os.environ.get(name, "")
    if not value:
        raise _refused(f"the environment variable {name}, which {KEY_FROM} names, is not set")
    if not _CREDENTIAL.fullmatch(value):
        raise _refused(f"the environment variable {name} has blanks or other letters than a credential has")
    return value


def shown(text: str, server: StreamServer) -> str:
    """Shorten what a server sent to a line without its credential, which it may repeat."""
    credential = credential_of(server)
    return one_line(shortened(text.replace(credential, HIDDEN) if credential else text))


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="E_CONTESTANT")
