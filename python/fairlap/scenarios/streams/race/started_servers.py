"""Starts the servers of a race that are fairlap's to start, one after the other, and keeps what they print."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.launch.environments import environment_with
from fairlap.launch.packages.installed_packages import hidden_by, packages_in
from fairlap.launch.packages.making import making_of
from fairlap.launch.runners import NotInstalled
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.machine.software import package_of
from fairlap.meters.energy import EnergyMeter, Sensed, idle_power
from fairlap.request.names import ContestantName
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.race.turn_resources import TurnMeter
from fairlap.scenarios.streams.started.server_start import ServerStart
from fairlap.scenarios.streams.started.started_server import StartedServer


# What a server that fairlap starts runs in: the environment at hand, or one that is made for its version.
@dataclass(frozen=True)
class ServerEnvironment:
    variables: dict[str, str]  # all but those that the start of the server sets
    version: str = ""  # of the server's package; empty for a command of the user's


def environment_of(
    contestant: ContestantName, start: ServerStart, stack: ExitStack, report: Callable[[str], None]
) -> ServerEnvironment:
    """Hold it for as long as the stack does. Raises InstallFailed."""
    variables = own_environment()
    if not start.packages:
        _require_modules(start)
        here = str(Path(sys.executable).parent)
        return ServerEnvironment(_searching(variables, here) if start.package else variables, _version_of(start))
    making = making_of(contestant.options)
    made = stack.enter_context(environment_with(start.packages, report, making))
    places = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    if hidden := hidden_by(made, start.package, places):
        raise InvalidRequest(
            f"{hidden[0]} would be imported from {hidden[1]}, which PYTHONPATH names, in place of what was installed",
            code="E_CONTESTANT",
        )
    variables |= {**making.variables, "VIRTUAL_ENV": str(made.folder)}
    found = packages_in(made).get(package_of(start.package), "")
    return ServerEnvironment(_searching(variables, str(made.python.parent)), found)


def _require_modules(start: ServerStart) -> None:
    if lacking := [each for each in start.modules if find_spec(each) is None]:
        raise NotInstalled(f"it needs {' and '.join(lacking)}, which this environment lacks: {start.install}")


def _searching(variables: dict[str, str], folder: str) -> dict[str, str]:
    return {**variables, "PATH": os.pathsep.join(filter(None, (folder, variables.get("PATH", ""))))}


def _version_of(start: ServerStart) -> str:
    try:
        return version(start.package) if start.package else ""
    except PackageNotFoundError:
        return ""


LOGS = "servers"
_KEPT_LOGS = 50


class StartedServers:
    """Use it in ``with``: at its end nothing of any server is left."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce, self._stack = announce, ExitStack()
        self._energy: dict[str, tuple[EnergyMeter, Sensed]] = {}  # by device
        self._meters: dict[StartedServer, TurnMeter] = {}
        self._variables: dict[str, dict[str, str]] = {}  # of environments, by the contestant's name

    def __enter__(self) -> StartedServers:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def start(self, contestant: Contestant, name: ContestantName) -> bool:
        """Return whether it can be asked now; why not is noted with it. One that runs already can."""
        start = contestant.server.start
        if start is None:
            return True
        self._sensed(start.device)
        self._announce(f"starting {name.text}, which is given {start.ready_within_s:g} s")
        try:
            environment = environment_of(name, start, self._stack, self._announce)
        except FairlapError as error:
            contestant.is_not_there(Notice(error.code, str(error)))
            return False
        contestant.version = environment.version
        self._variables[contestant.server.name] = environment.variables
        return self._begin(contestant)

    def restart(self, contestant: Contestant) -> None:
        """Start a new process of one whose process was ended after its last turn."""
        process, start = contestant.process, contestant.server.start
        if process is None or start is None or not process.is_over or not contestant.found.answers:
            return
        self._announce(f"starting {contestant.server.name} again")
        if self._begin(contestant):
            contestant.is_new = True
            self._measure(contestant)

    def _begin(self, contestant: Contestant) -> bool:
        process = None
        try:
            process = StartedServer(contestant.server, self._variables[contestant.server.name], new_log())
            self._stack.callback(process.end)
            process.wait_until_ready()
        except FairlapError as error:
            if process is not None:
                process.end()
            contestant.is_not_there(Notice(error.code, str(error)))
            return False
        contestant.process, contestant.server = process, process.server
        return True

    def examined(self, contestant: Contestant) -> None:
        """Stop it until its first turn, once it has been asked."""
        process, start = contestant.process, contestant.server.start
        if process is None or start is None:
            return
        contestant.note_end()
        self._measure(contestant)
        contestant.stop()

    def _measure(self, contestant: Contestant) -> None:
        process, start = contestant.process, contestant.server.start
        assert process is not None
        assert start is not None
        energy, sensed = self._sensed(start.device)
        self._meters[process] = TurnMeter(process, energy, sensed, process.peak_bytes())

    @contextmanager
    def turn_of(self, contestant: Contestant, asked: StreamsAsked) -> Iterator[TurnMeter | None]:
        """Let it run and measure what it takes; None of one that fairlap did not start."""
        meter = None if contestant.process is None else self._meters[contestant.process]
        with contestant.having_turn():
            if meter is None:
                yield None
                return
            contestant.wake(asked)
            with meter.measuring():
                yield meter
            contestant.note_end()

    def _sensed(self, device: str) -> tuple[EnergyMeter, Sensed]:
        """Measure the idle machine before the first server on a device is started."""
        if device not in self._energy:
            self._energy[device] = (EnergyMeter(device), idle_power(device, self._announce))
        return self._energy[device]


def new_log() -> Path:
    """Name one, and remove those of many starts ago."""
    folder = work_cache() / LOGS
    make_cache_folder(folder)
    for old in sorted(folder.glob("*.log"))[: -_KEPT_LOGS + 1]:
        old.unlink(missing_ok=True)
    return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6:06d}.log"
