"""How a contestant's server is started: its command, where it then listens, and when it counts as ready."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.request.fields.package_origin import FIND_LINKS, INDEX, PYTHON, WITH, named_in
from fairlap.request.fields.server_address import ServerAddress, require_loopback, server_address
from fairlap.request.fields.started_server import (
    ADDRESS,
    COMMAND_LINE,
    DEVICE,
    HEALTH,
    MODEL,
    MORE,
    READY_WITHIN,
    RESTARTS,
    SERVE,
    TIMEOUT,
)
from fairlap.request.names import ContestantName, Device
from fairlap.request.units import Seconds, require_within_a_day
from fairlap.scenarios.streams.started.known_servers import IN_PROCESS, KNOWN, KnownServer
from fairlap.suggestions import did_you_mean

PORT = "{port}"
_READY_WITHIN_S = 120.0
_ANY_PORT = "1"  # in an address that is only looked at
_ADDRESS = f"http://127.0.0.1:{PORT}"
_OF_PROCESSES = (MODEL, TIMEOUT, READY_WITHIN, DEVICE, RESTARTS, WITH, PYTHON, INDEX, FIND_LINKS)
_OF_COMMANDS, _OF_ENVIRONMENTS = (ADDRESS, COMMAND_LINE), (PYTHON, INDEX, FIND_LINKS)
_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True)
class ServerStart:
    words: tuple[str, ...]  # of its command; a free port is put in the place of {port}
    url: str  # likewise
    health: str  # the path that answers with status 200 once it is ready; empty for the one of its API
    ready_within_s: float
    device: str  # whose energy is its
    variables: Mapping[str, str] = field(default_factory=dict)
    model: str = ""  # by its name in requests; empty where the contestant says it
    package: str = ""  # whose version it has; empty for a command of the user's
    is_in_process: bool = False  # a model without a server
    packages: tuple[str, ...] = ()  # of an environment that is made for it; empty where it runs in the one at hand
    modules: tuple[str, ...] = ()  # that have to be in the environment at hand
    install: str = ""  # the line that installs them
    restarts: bool = True  # for each block, so that a block is evidence of a process of its own

    @property
    def draws_port(self) -> bool:
        return PORT in self.url

    def address(self, port: int | None = None) -> ServerAddress:
        return server_address(self.url.replace(PORT, str(port or _ANY_PORT)), example=_ADDRESS)

    def command(self, port: int) -> tuple[str, ...]:
        return tuple(word.replace(PORT, str(port)) for word in self.words)

    def own_variables(self, port: int) -> dict[str, str]:
        return {name: value.replace(PORT, str(port)) for name, value in self.variables.items()}


def is_started(contestant: ContestantName) -> bool:
    """Whether it is one that fairlap starts."""
    return contestant.framework == SERVE or is_in_process(contestant)


def is_in_process(contestant: ContestantName) -> bool:
    return contestant.framework in IN_PROCESS and not contestant.variant


def start_of(contestant: ContestantName) -> ServerStart:
    """Check all that can be checked before it is started."""
    options = dict(contestant.options)
    if is_in_process(contestant) and (unknown := {*options} - {*_OF_PROCESSES}):
        raise _refused(f"{contestant.text}: it has no option {min(unknown)}=; it takes {', '.join(_OF_PROCESSES)}")
    within_s = float(Seconds(options.get(READY_WITHIN, str(_READY_WITHIN_S))))
    require_within_a_day(f"{READY_WITHIN}=", within_s)
    health = options.get(HEALTH, "")
    if health and not health.startswith("/"):
        raise _refused(f"{HEALTH}= is a path such as /health (got {health})")
    device = Device(options.get(DEVICE, "cpu"))
    if options.get(RESTARTS, "on") not in _SWITCH:
        raise _refused(f"{contestant.text}: {RESTARTS}= must be on or off (got {options[RESTARTS]})")
    restarts = _SWITCH[options.get(RESTARTS, "on")]
    known = IN_PROCESS[contestant.framework] if is_in_process(contestant) else _known(contestant)
    if known is None:
        return replace(_of_command(contestant, options, health, within_s, device), restarts=restarts)
    if given := next((name for name in _OF_COMMANDS if name in options), ""):
        raise _refused(f"{contestant.text}: {given}= is of {SERVE}:{COMMAND_LINE}=..., whose command is yours")
    if device != "cpu" and not known.has_device:
        raise _refused(
            f"{contestant.text}: it runs on the CPU; start it elsewhere by its command, {SERVE}:{COMMAND_LINE}=..."
        )
    model = _model_of(known, contestant, options)
    apart = contestant.is_apart
    words = _words(known.command, model, device, "python" if apart else sys.executable)
    words += _words(options.get(MORE, ""), model, device)
    return ServerStart(
        words=words,
        url=f"{_ADDRESS}{known.path}",
        health=health or known.health,
        ready_within_s=within_s,
        device=device,
        variables=known.variables,
        model=model,
        package=known.package,
        is_in_process=is_in_process(contestant),
        packages=known.packages_of(contestant.version, contestant.release) if apart else (),
        modules=known.modules,
        install=known.install,
        restarts=restarts,
    )


def _of_command(
    contestant: ContestantName, options: Mapping[str, str], health: str, within_s: float, device: str
) -> ServerStart:
    if MORE in options:
        raise _refused(f"{contestant.text}: {MORE}= is of servers that are started by name; write it into the command")
    release = contestant.release
    if (given := next((name for name in _OF_ENVIRONMENTS if name in options), "")) and not release:
        raise _refused(f"{contestant.text}: {given}= is of an environment; name what is installed in it with {WITH}=")
    words = _words(options.get(COMMAND_LINE, ""), options.get(MODEL, ""), device)
    url = options.get(ADDRESS, f"{_ADDRESS}/v1")
    if PORT in url and not any(PORT in word for word in words):
        raise _refused(
            f"{contestant.text}: write {PORT} into the command, where a free port is put, or name its address with "
            f"{ADDRESS}=http://127.0.0.1:8000/v1"
        )
    package = named_in(release).partition("[")[0]
    packages = (release,) if release else ()
    start = ServerStart(words, url, health, within_s, device, package=package, packages=packages)
    require_loopback(contestant.text, start.address(), "the prompts")
    return start


def _known(contestant: ContestantName) -> KnownServer | None:
    """None for a command of the user's."""
    name = contestant.variant
    if not name:
        if COMMAND_LINE not in dict(contestant.options):
            raise _refused(f'{contestant.text}: name a server, or its command with {COMMAND_LINE}="..."')
        return None
    if name not in KNOWN:
        hint = did_you_mean(name, KNOWN) or f'any other server is started by {SERVE}:{COMMAND_LINE}="..."'
        raise _refused(f"{name} is not one of {', '.join(KNOWN)}; {hint}")
    return KNOWN[name]


def _model_of(known: KnownServer, contestant: ContestantName, options: Mapping[str, str]) -> str:
    path = Path(options.get(MODEL, "")).expanduser()
    is_there = path.is_dir() if known.model == "folder" else path.is_file()
    if MODEL not in options or not is_there:
        got = f" (got {path})" if MODEL in options else ""
        raise _refused(f"{contestant.text}: {MODEL}= names the {known.model} of a model on this machine{got}")
    return str(path.absolute())


def _words(command: str, model: str, device: str, python: str = "{python}") -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _refused(f"cannot split {command!r} into words: {error}") from None
    filled = (("{model}", model), ("{device}", device), ("{python}", python))
    for place, value in filled:
        words = [word.replace(place, value) for word in words]
    return tuple(words)


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="E_CONTESTANT")
