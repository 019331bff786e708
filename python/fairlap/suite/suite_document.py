"""What came of a suite, for programs: its races with their verdicts, what was left out, and the exit status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from fairlap.errors import InvalidRequest, reason_of
from fairlap.history.gate import Finding, GateFinding, Status, overall
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.files.regular_file import content_of
from fairlap.printed_document import PrintedDocument
from fairlap.race.planning.plan import Plan
from fairlap.request.suite import E_SUITE, LeftOut, Selection
from fairlap.request.work import Conditions
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.contract import Unit
from fairlap.scenarios.process_result import Outcome
from fairlap.verdict import ERROR_RATE

State = Literal["finished", "failed", "interrupted", "not run"]
"""Failed: no contestant has a result."""


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class RacedContestant(msgspec.Struct, frozen=True, kw_only=True):
    contestant: str
    outcome: Outcome
    code: str
    message: str
    place: str | None
    judged: Annotated[Estimate | None, _about("What it is ranked by, in `judged_unit`.")]
    judged_by: str
    judged_unit: Unit
    baseline: str | None
    ratio: Annotated[Estimate | None, _about("How many times as long it takes as the baseline.")]
    verdict: str | None
    p: Annotated[
        float | None, _about("Of its difference from the baseline, corrected for all works; claimed up to 0.05.")
    ]


class RacedWork(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    conditions: Conditions
    blocks: int
    why_no_verdict: str
    contestants: list[RacedContestant]
    trades: Annotated[list[str], _about("What a faster contestant is shown to cost, such as memory.")] = []


class RaceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """``place`` is its place in the drawn order; ``run`` the id of its stored run, empty where it was not stored."""

    name: str
    tags: tuple[str, ...]
    state: State
    place: int
    run: str = ""
    code: str = ""
    why: Annotated[str, _about("Why it failed.")] = ""
    works: list[RacedWork] = []
    findings: Annotated[list[GateFinding], _about("Of a race with a largest acceptable slowdown.")] = []


class SuiteDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.suite/1"):
    suite: Annotated[str, _about("The id of this run of the suite.")]
    file: str
    sha256: Annotated[str, _about("Of the suite's file.")]
    began_at: str
    state: Literal["finished", "interrupted"]
    exit_status: int
    strict: bool
    base: Annotated[str | None, _about("The folder of one side, where races were between two.")]
    change: str | None
    selection: Selection
    seed: Annotated[int, _about("Drew the order of the races.")]
    works: Annotated[int, _about("How many share the error rate, in all shards.")]
    error_rate: Annotated[float, _about("The chance that any difference claimed in the whole suite is false.")]
    races: list[RaceDocument]
    left_out: list[LeftOut]


def of_works(results: Results, plan: Plan) -> Results:
    """Select those of one race from a run that it shares with others."""
    ids = {work.id for work in plan.works}
    return replace(results, work_results=tuple(each for each in results.work_results if each.work.id in ids))


def works_of(results: Results) -> list[RacedWork]:
    return [
        RacedWork(
            title=results.run.plan.title_of(each.work),
            conditions=each.conditions,
            blocks=len(each.blocks.kept),
            why_no_verdict=each.why_no_verdict,
            contestants=[_contestant(each, row) for row in each.rows],
            trades=each.trades,
        )
        for work in results.works()
        for each in results.of_work(work)
    ]


def _contestant(found: WorkResult, row: Row) -> RacedContestant:
    compared = None if row.baseline is None else found.comparison(row.contestant, row.baseline)
    return RacedContestant(
        contestant=row.contestant,
        outcome=row.outcome,
        code=row.code,
        message=row.message,
        place=row.place,
        judged=row.judged,
        judged_by=row.judged_by,
        judged_unit=row.judged_unit,
        baseline=row.baseline,
        ratio=row.ratio,
        verdict=row.verdict,
        p=None if compared is None else over_suite(compared.p_adjusted, compared.level),
    )


def over_suite(p: float, level: float) -> float:
    """Correct a p value, which was compared with the level that its work has of the suite's error rate."""
    return min(1.0, p * ERROR_RATE / level)


def findings_of(name: str, results: Results) -> list[Finding]:
    """Compare a race with its bound; none where it has no bound."""
    gate = results.run.plan.gate
    if gate is None:
        return []
    found = results.findings_against(gate.baseline, max_slowdown=gate.max_slowdown)
    return [replace(each, text=f"{name}: {each.text}") for each in found]


_STATUSES = {
    "passed": Status.PASSED,
    "slower": Status.SLOWER,
    "exceeded": Status.SLOWER,
    "inconclusive": Status.INCONCLUSIVE,
}


def findings_in(races: Sequence[RaceDocument]) -> list[Finding]:
    """List those of all races, as a gate has them."""
    return [
        Finding(
            _STATUSES.get(each.status, Status.NOT_COMPARABLE),
            each.text,
            each.ratio,
            each.low,
            each.high,
            each.required,
        )
        for race in races
        for each in race.findings
    ]


def trades_in(races: Sequence[RaceDocument]) -> list[str]:
    """List what is shown to be traded, with the name of the race."""
    return [f"{race.name}: {text}" for race in races for work in race.works for text in work.trades]


def exit_status_of(races: Sequence[RaceDocument], *, two_sides: bool, strict: bool, lost: bool = False) -> int:
    """As of a gate where races have bounds; else 1 where a race has no result, or something of one was lost."""
    findings = findings_in(races)
    status = int(overall(findings, strict=strict)) if findings or two_sides else 0
    return status or int(not two_sides and (lost or any(race.state == "failed" for race in races)))


def read_suite_document(path: Path) -> SuiteDocument:
    """Read what ``suite run`` wrote."""
    try:
        return msgspec.json.decode(content_of(path), type=SuiteDocument)
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {reason_of(error)}", code="E_FILE") from None
    except NOT_THE_DOCUMENT as error:
        raise InvalidRequest(f"{path} is not the result of a suite: {error}", code=E_SUITE) from None
