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

from fairlap import quantity_text
from fairlap.cli.output import print_note
from fairlap.cli.races.planned_race import resumable, warn_of_too_few_blocks
from fairlap.cli.races.recorder import StoredRun
from fairlap.cli.races.run_race import checked_output, has_a_result, run_race
from fairlap.cli.races.shared_races import Group, PlannedRace, in_groups, joined
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.frameworks.programs.command import require_programs
from fairlap.frameworks.suites.child_process import BenchmarkSkipped
from fairlap.history.gate import Finding, Status
from fairlap.interrupts import ignore_signals, interrupted_once, status_of
from fairlap.pull_request.checkouts import NoBaseline
from fairlap.pull_request.sides import BASE, CHANGE, request_between
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import allow
from fairlap.race.planning.plan_required import changes_and_limits
from fairlap.request.race_request import RaceRequest
from fairlap.request.suite import (
    E_SUITE,
    IN_ANOTHER_SHARD,
    FoundRace,
    Kind,
    LeftOut,
    RaceOfSuite,
    Selection,
    Suite,
    of_shard,
)
from fairlap.request.units import Seconds
from fairlap.results.decision.required_measured import require_measured
from fairlap.results.results import Results
from fairlap.store.runs.run_ids import id_of
from fairlap.suite.suite_document import (
    RaceDocument,
    SuiteDocument,
    exit_status_of,
    findings_of,
    of_works,
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
    packages: Mapping[str, str] = field(default_factory=dict)  # installed for a side, in the place of its folder
    named: Mapping[str, str] = field(default_factory=dict)  # sides that are not folders of the user, as they were given
    budget_s: float | None = None
    strict: bool = False
    trust: bool = False
    store: bool = True
    quiet: bool = False
    pass_env: tuple[str, ...] = ()
    required: tuple[RequiredChange, ...] = ()  # of every race

    @property
    def kind(self) -> Kind:
        return "two sides" if self.sides else "contestants"

    def shown(self, side: str) -> str | None:
        return self.named.get(side) or (str(self.sides[side]) if self.sides else None)


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
    skipped: list[LeftOut] = []
    planned = _planned(selected if not options.sides else own, options, {each.name for each in own}, skipped)
    own = tuple(each for each in own if each.name not in {left.name for left in skipped})
    works = resumed.works if resumed else _count_works(planned, len(selected), options)
    seed = resumed.seed if resumed else secrets.randbelow(2**31)
    running = _Running(suite, options, planned, own, skipped, works, seed, resumed, save)
    return running.run()


def _planned(
    races: Sequence[RaceOfSuite], options: SuiteOptions, own: set[str], skipped: list[LeftOut]
) -> list[PlannedRace]:
    """Everything that is wrong with any race is an error here, before the first one runs.

    Benchmarks that say that they do not run here are added to ``skipped``.
    """
    found = []
    if not options.quiet and (tried := sum(isinstance(race, FoundRace) and not race.broken for race in races)):
        print_note(f"trying {quantity_text.count(tried, 'benchmark')} on both sides")
    for race in races:
        require = ",".join(filter(None, (race.require, *(each.text for each in options.required))))
        passed = (*race.pass_env, *options.pass_env)
        race = msgspec.structs.replace(race, trust=options.trust, pass_env=passed, require=require)
        try:
            request = request_between(race, options.sides, options.packages) if options.sides else _request_alone(race)
            plan = plan_of(request, _silent if options.quiet else print_note)
            require_measured(plan)
            require_programs(plan.contestants)
        except BenchmarkSkipped as error:
            skipped.append(LeftOut(race.name, f"skipped: {error}"))
            continue
        except NoBaseline as error:
            found.append(PlannedRace(race, race, None, str(error), error.code))
            continue
        except FairlapError as error:
            raise InvalidRequest(f"{race.name}: {error}", code=error.code) from error
        if options.sides and len(plan.works) != 1:
            raise InvalidRequest(f"{race.name}: {len(plan.works)} works; between two sides give it one", code=E_SUITE)
        allow(plan)
        if race.name in own:
            checked_output(request, request, store=options.store)
        found.append(PlannedRace(race, request, plan))
    return found


def _request_alone(race: RaceOfSuite) -> RaceRequest:
    """Drop a bound that the suite gives to all its races, where a race has nothing to compare with a baseline."""
    bounded = race.baseline or changes_and_limits(race.require)[0]
    return race if bounded else msgspec.structs.replace(race, max_slowdown=None)


def _count_works(planned: Sequence[PlannedRace], selected: int, options: SuiteOptions) -> int:
    """Count those that can be compared, over all shards; between two sides those of other shards are not tried here."""
    if options.sides and options.selection.shard:
        return selected
    return max(1, sum(len(each.plan.works) for each in planned if each.plan))


def begun_text(names: Sequence[str], done: int, races: int) -> str:
    """``race 3 of 7: parse``; of several that are run as one, ``races 3 to 5 of 7: parse, sort, join``."""
    last = done + len(names)
    which = f"race {last}" if len(names) == 1 else f"races {done + 1} to {last}"
    return f"{which} of {races}: {', '.join(names)}"


class _Running:
    def __init__(
        self,
        suite: Suite,
        options: SuiteOptions,
        planned: Sequence[PlannedRace],
        own: Sequence[RaceOfSuite],
        skipped: Sequence[LeftOut],
        works: int,
        seed: int,
        resumed: SuiteDocument | None,
        save: Callable[[SuiteDocument], None],
    ) -> None:
        self._suite, self._options, self._works, self._seed, self._save = suite, options, works, seed, save
        self._skipped = skipped
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
        self._groups = self._in_groups()
        self._lost = False
        self._interrupted = 0
        self._began_s = time.monotonic()

    def run(self) -> SuiteDocument:
        with interrupted_once():
            try:
                done = 0
                for group in self._groups:
                    if not self._options.quiet:
                        print_note(begun_text([each.race.name for each in group], done, len(self._order)))
                    self._race(group, len(self._order) - done)
                    done += len(group)
                    if self._interrupted:
                        break
                    self._save(self._document())
                ignore_signals()
            except KeyboardInterrupt as interrupt:
                self._interrupted = status_of(interrupt)
            found = self._document()
            self._save(found)
        return found

    def _in_groups(self) -> list[Group]:
        planned = [self._planned[name] for name in self._order]
        if self._options.budget_s is not None:  # each race has a share of it
            return [(each,) for each in planned]
        return in_groups(planned, [self._done[name].run for name in self._order])

    def _race(self, group: Group, left: int) -> None:
        planned = group[0]
        before = self._done[planned.race.name]
        if planned.plan is None:
            finding = Finding(Status.NOT_COMPARABLE, f"{before.name}: {planned.why}").printed
            self._done[before.name] = msgspec.structs.replace(
                before, state="failed", why=planned.why, code=planned.code, findings=[finding]
            )
            return
        plan = joined(group).sharing_its_errors(self._works)
        resumed = self._resumed(before)
        plan = resumed.run.plan if resumed else plan
        taken: dict[str, RaceDocument] = {}

        def take(results: Results, run_id: str) -> None:
            for each in group:
                own = results if len(group) == 1 or each.plan is None else of_works(results, each.plan)
                taken[each.race.name] = msgspec.structs.replace(
                    self._done[each.race.name],
                    state="finished" if has_a_result(own) else "failed",
                    run=run_id,
                    works=works_of(own),
                    findings=[found.printed for found in findings_of(each.race.name, own)],
                )

        if not self._options.quiet:
            warn_of_too_few_blocks(plan, print_note, f"{before.name}: ")
        request = msgspec.structs.replace(planned.request, budget=self._budget(planned.request, left))
        output = checked_output(request, request, store=self._options.store, quiet=self._options.quiet)
        try:
            status = run_race(plan, replace(output, answer=take), resumed)
        except FairlapError as error:
            for each in group:
                name = each.race.name
                found = msgspec.structs.replace(self._done[name], state="failed", why=str(error), code=error.code)
                if self._options.sides:
                    finding = Finding(Status.NOT_COMPARABLE, f"{name}: {error}").printed
                    found = msgspec.structs.replace(found, findings=[finding])
                self._done[name] = found
            return
        if status >= _FIRST_SIGNAL:
            self._interrupted = status
            taken = {name: msgspec.structs.replace(each, state="interrupted") for name, each in taken.items()}
        else:
            self._lost = self._lost or (bool(status) and all(each.state == "finished" for each in taken.values()))
        self._done |= taken

    def _resumed(self, before: RaceDocument) -> StoredRun | None:
        """Resume the stored run of a race that was broken off."""
        if before.state != "interrupted" or not before.run or not self._options.store:
            return None
        options = self._options
        return resumable(before.run, print_note, options.pass_env, trust=options.trust, budget_s=options.budget_s)

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
        known = {*self._names, *(each.name for each in self._skipped)}
        others = [each.name for each in self._suite.selected(options.selection, options.kind)]
        elsewhere = [LeftOut(name, IN_ANOTHER_SHARD) for name in others if name not in known]
        return SuiteDocument(
            suite=self._id,
            file=str(self._suite.path),
            sha256=self._suite.sha256,
            began_at=self._began_at,
            state="finished" if whole else "interrupted",
            exit_status=self._interrupted or status,
            strict=options.strict,
            base=options.shown(BASE),
            change=options.shown(CHANGE),
            selection=options.selection,
            seed=self._seed,
            works=self._works,
            error_rate=ERROR_RATE,
            races=races,
            left_out=[*self._skipped, *self._suite.left_out(options.selection, options.kind), *elsewhere],
        )


def _silent(_line: str) -> None:
    return None
