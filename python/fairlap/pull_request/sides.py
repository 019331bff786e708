"""The two sides of a change as contestants of a race: one program or callable, in both folders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.pull_request.checkouts import NoBaseline
from fairlap.request.fields.package_origin import WITH

if TYPE_CHECKING:
    from fairlap.frameworks.suites.child_process import Member
    from fairlap.request.names import ContestantName
    from fairlap.request.race_request import RaceRequest
    from fairlap.request.suite import RaceOfSuite

BASE, CHANGE = "base", "change"


def programs(run: str, sides: Mapping[str, Path], reported: str = "", passed: Collection[str] = ()) -> dict[str, Any]:
    """Fields of a request that races a command in each folder; the base has to run it."""
    from fairlap.frameworks.programs.command import output_of
    from fairlap.request.commands import Command, words_of

    words_of(run)
    try:
        output_of(run, str(sides[BASE]), reported=reported, passed=passed)
    except InvalidRequest as error:
        raise NoBaseline(f"the base does not run {run!r}: {error}") from None
    return {"commands": {side: Command(run, str(folder)) for side, folder in sides.items()}}


def callables(call: str, sides: Mapping[str, Path]) -> dict[str, Any]:
    """Fields of a request that races MODULE.CALLABLE, or MODULE:CALLABLE, as imported from each folder."""
    from fairlap.request.names import ContestantName, Contestants

    names = [
        ContestantName(side, "python", options=(("call", call.replace(":", ".")), ("path", str(folder))))
        for side, folder in sides.items()
    ]
    return {"models": ("callable",), "contestants": Contestants.of(names)}


def benchmarks(
    member: Member,
    sides: Mapping[str, Path],
    packages: Mapping[str, str],
    passed: Collection[str] = (),
    tried: Collection[str] = (BASE, CHANGE),
) -> dict[str, Any]:
    """Fields of a request that races one benchmark of a suite between two folders or releases.

    Sides in ``tried`` run it once before the race. Raises NoBaseline where one fails, and BenchmarkSkipped where the
    benchmark does not run here.
    """
    from fairlap.frameworks.suites.child_process import BenchmarkFailed, BenchmarkSkipped
    from fairlap.request.names import Contestants

    names = []
    for side, folder in sides.items():
        package = packages.get(side, "")
        try:
            if side in tried:
                _try(member, "" if package else str(folder), package, passed)
        except BenchmarkSkipped:
            raise
        except BenchmarkFailed as error:
            raise NoBaseline(f"the {side} does not run it: {error}") from None
        names.append(benchmark_contestant(side, member, package or folder))
    return {"models": ("callable",), "contestants": Contestants.of(names)}


def benchmark_contestant(name: str, member: Member, side: Path | str) -> ContestantName:
    """Name a benchmark of a suite with the code of a folder, or of a release that is installed."""
    from fairlap.request.names import BENCHMARK, PATH, ContestantName

    of_member = tuple((key, value) for key, value in msgspec.structs.asdict(member).items() if value)
    place = (PATH, str(side)) if isinstance(side, Path) else (WITH, side)
    return ContestantName(name, BENCHMARK, options=(*of_member, place))


def _try(member: Member, side: str, package: str, passed: Collection[str]) -> None:
    from fairlap.frameworks.suites.child_process import BenchmarkProcess
    from fairlap.frameworks.suites.suite_benchmark import require_from_side
    from fairlap.machine.programs.passed_environment import own_environment

    with python_of(package, lambda _line: None) as python:
        environment = own_environment(passed)
        with BenchmarkProcess("try", member, side, python=python, environment=environment) as process:
            require_from_side(process.reply(), side)


@contextmanager
def python_of(package: str, notify: Callable[[str], None]) -> Iterator[str]:
    """Hold the interpreter of the environment in which the package is raced; this one without a package."""
    if not package:
        yield sys.executable
        return
    from fairlap.frameworks.registry import framework_named
    from fairlap.launch.environments import environment_with
    from fairlap.launch.packages.making import making_of
    from fairlap.launch.packages.origins import with_pinned_origins
    from fairlap.launch.runners import requirements_of
    from fairlap.request.names import BENCHMARK, ContestantName

    [name] = with_pinned_origins([ContestantName(package, BENCHMARK, options=((WITH, package),))])
    needed = requirements_of(name, framework_named(BENCHMARK))
    with environment_with(needed, notify, making_of(name.options)) as made:
        yield str(made.python)


def request_between(
    race: RaceOfSuite,
    sides: Mapping[str, Path],
    packages: Mapping[str, str] | None = None,
    tried: Collection[str] = (BASE, CHANGE),
) -> RaceRequest:
    """Race what a suite declares between two sides; the base has to run it, if it is a program or a benchmark.

    ``packages`` are what is installed for a side in place of its folder; ``tried`` sides run a benchmark once first.
    """
    from fairlap.frameworks.suites.child_process import Member
    from fairlap.request.names import NO_CONTESTANTS
    from fairlap.request.suite import E_SUITE, FoundRace
    from fairlap.request.units import LargestSlowdown
    from fairlap.verdict import MAX_SLOWDOWN

    usual: dict[str, Any] = {"models": (), "contestants": NO_CONTESTANTS, "commands": {}}
    usual |= {"inputs": None, "reference": None} if race.command else {"reported": None, "same_output": False}
    if isinstance(race, FoundRace) and race.broken:
        raise NoBaseline(race.broken)
    if isinstance(race, FoundRace) and race.member:
        member = Member(race.tool, race.suite, race.member, race.module, race.root)
        own = benchmarks(member, sides, packages or {}, race.pass_env, tried)
    elif packages:
        raise InvalidRequest("a call or a command races between folders or commits, not releases", code=E_SUITE)
    elif race.command:
        own = programs(race.command, sides, race.reported or "", race.pass_env)
    else:
        own = callables(race.call, sides)
    bound = race.max_slowdown or LargestSlowdown(MAX_SLOWDOWN)
    return msgspec.structs.replace(race, **{**usual, **own}, baseline=BASE, max_slowdown=bound)
