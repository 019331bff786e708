"""The one benchmark of an existing suite that races in a search."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairlap.bisection.bisect_request import E_BISECT, BisectRequest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.suites.child_process import Member
from fairlap.judgement.judge_request import Benchmark
from fairlap.request.suite import FoundRace, RaceOfSuite, Selection
from fairlap.suite.found_suites import FoundOptions, is_own_file, open_suite

_SHOWN = 5


def with_benchmark(request: BisectRequest, release: str, notify: Callable[[str], None]) -> BisectRequest:
    """Find the benchmark that ``--only`` names, with the code of the repository's folder or of a release."""
    if request.suite is None:
        return request
    if is_own_file(request.suite):
        raise InvalidRequest(
            f"{request.suite} is a suite of fairlap: give the call or the command of a race in it", code=E_BISECT
        )
    options = FoundOptions(side=request.repository.absolute(), package=release, pass_env=request.pass_env)
    suite = open_suite(request.suite, options, notify)
    only = (request.only,) if request.only else ()
    found = suite.selected(Selection(only=only), "two sides")
    race = _one_of([each for each in found if each.name == request.only] or found, request)
    if race.broken:
        raise InvalidRequest(f"{race.name} cannot be raced: {race.broken}", code=E_BISECT)
    if race.member:
        member = Member(race.tool, race.suite, race.member, race.module, race.root)
        return msgspec.structs.replace(request, member=member)
    return msgspec.structs.replace(
        request, benchmark=Benchmark(command=race.command, reported=str(race.reported or ""))
    )


def _one_of(found: list[RaceOfSuite] | tuple[RaceOfSuite, ...], request: BisectRequest) -> FoundRace:
    if len(found) == 1 and isinstance(found[0], FoundRace):
        return found[0]
    more = ", ..." if len(found) > _SHOWN else ""
    names = ", ".join(each.name for each in found[:_SHOWN]) + more
    raise InvalidRequest(f"one benchmark races; name it with --only, of {names}", code=E_BISECT)
