"""The two sides of a change as contestants of a race: one program or callable, in both folders."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.errors import InvalidRequest
from fairlap.pull_request.checkouts import NoBaseline

if TYPE_CHECKING:
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


def request_between(race: RaceOfSuite, sides: Mapping[str, Path]) -> RaceRequest:
    """Race what a suite declares between two sides; the base has to run it, if it is a program."""
    import msgspec

    from fairlap.request.names import NO_CONTESTANTS
    from fairlap.request.units import LargestSlowdown
    from fairlap.verdict import MAX_SLOWDOWN

    usual: dict[str, Any] = {"models": (), "contestants": NO_CONTESTANTS, "commands": {}}
    usual |= {"inputs": None, "reference": None} if race.command else {"reported": None, "same_output": False}
    own = (
        programs(race.command, sides, race.reported or "", race.pass_env)
        if race.command
        else callables(race.call, sides)
    )
    bound = race.max_slowdown or LargestSlowdown(MAX_SLOWDOWN)
    return msgspec.structs.replace(race, **{**usual, **own}, baseline=BASE, max_slowdown=bound)
