"""Run a suite: one race after the other in drawn order, each as its request is, with one error rate over all."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from fairlap.cli.output import print_note
from fairlap.cli.races.planned_race import resumable, warn_of_too_few_blocks
from fairlap.cli.races.recorder import StoredRun
from fairlap.cli.races.run_race import checked_output, has_a_result, run_race
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.frameworks.programs.command import require_programs
from fairlap.history.gate import Finding, Status
from fairlap.interrupts import ignore_signals, interrupted_once, status_of
from fairlap.pull_request.checkouts import NoBaseline
from fairlap.pull_request.sides import BASE, CHANGE, request_between
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import allow
from fairlap.race.planning.plan_required import with_required
from fairlap.request.race_request import RaceRequest
from fairlap.request.suite import E_SUITE, Kind, LeftOut, RaceOfSuite, Selection, Suite, of_shard
from fairlap.request.units import Seconds
from fairlap.results.results import Results
from fairlap.store.runs.run_ids import id_of
from fairlap.suite.suite_document import (
    RaceDocument,
    SuiteDocument,
    exit_status_of,
    findings_of,
    works_of,
)
from fairlap.verdict import ERROR_RATE, RequiredChange

_LEAST_BUDGET_S = 0.1
_FIRST_SIGNAL = 128  # an exit status from here on is that of a signal


@dataclass(frozen=True, kw_only=True)
class SuiteOptions:
    """``sides`` are the folders of base and change, where races are between two; ``budget_s`` is that of the suite."""

    selection: Selection = field(default_factory=Selection)
    sides: Mapping[str, Path] = field(default_factory=dict)
    budget_s: float | None = None
    strict: bool = False
    trust: bool = False
    store: bool = True
    quiet: bool = False
    pass_env: tuple[str, ...] = ()
    required: tuple[RequiredChange, ...] = ()  # of every race between two sides

    @property
    def kind(self) -> Kind:
        return "two sides" if self.sides else "contestants"


@dataclass(frozen=True)
class _Planned:
    race: RaceOfSuite
    request: RaceRequest
    plan: Plan | None  # None where the base cannot run it
    why: str = ""
    code: str = ""


def run_suite(
    suite: Suite,
    options: SuiteOptions,
    resumed: SuiteDocument | None = None,
    save: Callable[[SuiteDocument], None] = lambda _: None,
) -> SuiteDocument:
    """Run what is selected, or what an earlier run of it lacks; ``save`` gets the document after every race."""
    selected = suite.selected(options.selection, options.kind)
    own = of_shard(selected, options.selection.shard)
    if not own:
        raise InvalidRequest(f"{suite.path}: the shard has none of {len(selected)} races", code=E_SUITE)
    planned = _planned(selected if not options.sides else own, options, {each.name for each in own})
    works = resumed.works if resumed else _count_works(planned, len(selected), options)
    seed = resumed.seed if resumed else secrets.randbelow(2**31)
    running = _Running(suite, options, planned, own, works, seed, resumed, save)
    return running.run()


def _planned(races: Sequence[RaceOfSuite], options: SuiteOptions, own: set[str]) -> list[_Planned]:
    """Everything that is wrong with any race is an error here, before the first one runs."""
    found = []
    for race in races:
        race = msgspec.structs.replace(race, trust=options.trust, pass_env=(*race.pass_env, *options.pass_env))
        try:
            request = request_between(race, options.sides) if options.sides else _request_alone(race)
            plan = with_required(plan_of(request, _silent if options.quiet else print_note), options.required)
            require_programs(plan.contestants)
        except NoBaseline as error:
            found.append(_Planned(race, race, None, str(error), error.code))
            continue
        except FairlapError as error:
            raise InvalidRequest(f"{race.name}: {error}", code=error.code) from error
        if options.sides and len(plan.works) != 1:
            raise InvalidRequest(f"{race.name}: {len(plan.works)} works; between two sides give it one", code=E_SUITE)
        allow(plan)
        if race.name in own:
            checked_output(request, request, store=options.store)
        found.append(_Planned(race, request, plan))
    return found


def _request_alone(race: RaceOfSuite) -> RaceRequest:
    """Drop a bound that the suite gives to all its races, where a race has no baseline."""
    return race if race.baseline else msgspec.structs.replace(race, max_slowdown=None)


def _count_works(planned: Sequence[_Planned], selected: int, options: SuiteOptions) -> int:
    """Count them over all shards; between two sides every race has one."""
    return selected if options.sides else sum(len(each.plan.works) for each in planned if each.plan)


class _Running:
    def __init__(
        self,
        suite: Suite,
        options: SuiteOptions,
        planned: Sequence[_Planned],
        own: Sequence[RaceOfSuite],
        works: int,
        seed: int,
        resumed: SuiteDocument | None,
        save: Callable[[SuiteDocument], None],
    ) -> None:
        self._suite, self._options, self._works, self._seed, self._save = suite, options, works, seed, save
        self._began_at = resumed.began_at if resumed else datetime.now(UTC).isoformat(timespec="seconds")
        self._id = resumed.suite if resumed else id_of(self._began_at)
        self._planned = {each.race.name: each for each in planned}
        self._names = [each.name for each in own]
        order = random.Random(seed).sample(self._names, len(self._names))
        before = {each.name: each for each in resumed.races} if resumed else {}
        self._done = {
            each.name: before.get(each.name)
            or RaceDocument(name=each.name, tags=each.tags, state="not run", place=order.index(each.name))
            for each in own
        }
        self._order = [name for name in order if self._done[name].state in ("not run", "interrupted")]
        self._lost = False
        self._interrupted = 0
        self._began_s = time.monotonic()

    def run(self) -> SuiteDocument:
        with interrupted_once():
            try:
                for done, name in enumerate(self._order):
                    if not self._options.quiet:
                        print_note(f"race {done + 1} of {len(self._order)}: {name}")
                    self._race(self._planned[name], len(self._order) - done)
                    if self._interrupted:
                        break
                    self._save(self._document())
                ignore_signals()
            except KeyboardInterrupt as interrupt:
                self._interrupted = status_of(interrupt)
            found = self._document()
            self._save(found)
        return found

    def _race(self, planned: _Planned, left: int) -> None:
        before = self._done[planned.race.name]
        if planned.plan is None:
            finding = Finding(Status.NOT_COMPARABLE, f"{before.name}: {planned.why}").printed
            self._done[before.name] = msgspec.structs.replace(
                before, state="failed", why=planned.why, code=planned.code, findings=[finding]
            )
            return
        plan = msgspec.structs.replace(planned.plan, alpha=ERROR_RATE * len(planned.plan.works) / self._works)
        resumed = self._resumed(before)
        plan = resumed.run.plan if resumed else plan
        taken: list[RaceDocument] = []

        def take(results: Results, run_id: str) -> None:
            found = msgspec.structs.replace(
                before,
                state="finished" if has_a_result(results) else "failed",
                run=run_id,
                works=works_of(results),
                findings=[each.printed for each in findings_of(before.name, results)],
            )
            taken.append(found)

        if not self._options.quiet:
            warn_of_too_few_blocks(plan, print_note, f"{before.name}: ")
        request = msgspec.structs.replace(planned.request, budget=self._budget(planned.request, left))
        output = checked_output(request, request, store=self._options.store, quiet=self._options.quiet)
        try:
            status = run_race(plan, replace(output, answer=take), resumed)
        except FairlapError as error:
            found = msgspec.structs.replace(before, state="failed", why=str(error), code=error.code)
            if self._options.sides:
                finding = Finding(Status.NOT_COMPARABLE, f"{before.name}: {error}").printed
                found = msgspec.structs.replace(found, findings=[finding])
            self._done[before.name] = found
            return
        if status >= _FIRST_SIGNAL:
            self._interrupted = status
            taken = [msgspec.structs.replace(each, state="interrupted") for each in taken]
        else:
            self._lost = self._lost or (bool(status) and all(each.state == "finished" for each in taken))
        self._done[before.name] = taken[-1] if taken else before

    def _resumed(self, before: RaceDocument) -> StoredRun | None:
        """Resume the stored run of a race that was broken off."""
        if before.state != "interrupted" or not before.run or not self._options.store:
            return None
        return resumable(before.run, print_note, self._options.pass_env, trust=self._options.trust)

    def _budget(self, request: RaceRequest, left: int) -> Seconds | None:
        """Share what is left of the suite's budget equally among the races that are left."""
        if self._options.budget_s is None:
            return request.budget
        share_s = (self._options.budget_s - (time.monotonic() - self._began_s)) / left
        return Seconds(max(min(share_s, request.budget or share_s), _LEAST_BUDGET_S))

    def _document(self) -> SuiteDocument:
        options, races = self._options, [self._done[name] for name in self._names]
        whole = all(each.state in ("finished", "failed") for each in races)
        status = exit_status_of(races, two_sides=bool(options.sides), strict=options.strict, lost=self._lost)
        others = [each.name for each in self._suite.selected(options.selection, options.kind)]
        elsewhere = [LeftOut(name, "it is in another shard") for name in others if name not in self._names]
        return SuiteDocument(
            suite=self._id,
            file=str(self._suite.path),
            sha256=self._suite.sha256,
            began_at=self._began_at,
            state="finished" if whole else "interrupted",
            exit_status=self._interrupted or status,
            strict=options.strict,
            base=str(options.sides[BASE]) if options.sides else None,
            change=str(options.sides[CHANGE]) if options.sides else None,
            selection=options.selection,
            seed=self._seed,
            works=self._works,
            error_rate=ERROR_RATE,
            races=races,
            left_out=[*self._suite.left_out(options.selection, options.kind), *elsewhere],
        )


def _silent(_line: str) -> None:
    return None
