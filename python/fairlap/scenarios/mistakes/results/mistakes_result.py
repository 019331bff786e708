"""What contestants made of each planted mistake, and how much of it their reports name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

import msgspec

from fairlap.printed_document import PrintedDocument
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import over_processes
from fairlap.scenarios.mistakes.catalogue import Mistake, mistakes
from fairlap.scenarios.mistakes.mistakes_messages import MistakeSeen
from fairlap.scenarios.mistakes.naming import names_any, names_line, names_sizes, sides_named
from fairlap.scenarios.mistakes.race.mistakes_run import MistakesRun, Planted
from fairlap.scenarios.mistakes.ways import WAYS, Way

Outcome = Literal["error", "warning", "silent", "works", "crash", "hang", "absent"]
REPORTED: tuple[Outcome, ...] = ("error", "warning")
_MOST_MESSAGE = 400


class Naming(msgspec.Struct, frozen=True):
    """What a report names. None is of what this mistake does not have."""

    line: bool | None = None  # the user's
    sides: int | None = None  # how many of those that contradict each other
    of_sides: int = 0
    sizes: bool | None = None  # those that do not fit, of shapes
    operator: bool | None = None
    part: bool | None = None  # the layer, node or weight, by the name that the user gave it

    @property
    def both(self) -> bool | None:
        return None if self.sides is None else self.sides == self.of_sides


class MistakeRow(msgspec.Struct, frozen=True):
    contestant: str
    version: str
    kind: str
    mistake: str
    what: str
    outcome: Outcome
    raised: str = ""  # the class of the exception
    named: Naming = Naming()
    report_s: Estimate | None = None  # from the call to the report
    printed_lines: int | None = None
    message: str = ""  # the beginning; of a process that was lost, how
    printed: str = ""
    differs: bool = False  # processes of this contestant had other outcomes too
    absent: str = ""  # why there is no such mistake


class MistakesOfContestant(msgspec.Struct, frozen=True):
    """Counts over its mistakes; ``line``, ``both``, ``operator`` and ``part`` are of those that it reported."""

    contestant: str
    version: str
    planted: int
    outcomes: Mapping[Outcome, int]
    line: tuple[int, int]  # named, of how many that have one
    both: tuple[int, int]
    operator: tuple[int, int]
    part: tuple[int, int]
    report_s: float | None  # the median, of errors
    printed_lines: float | None


class MistakesResult(PrintedDocument, frozen=True, tag="fairlap.mistakes/1"):
    blocks: int
    limit_s: float
    contestants: tuple[MistakesOfContestant, ...]
    rows: tuple[MistakeRow, ...]
    failures: Mapping[str, str]


def result_of(run: MistakesRun) -> MistakesResult:
    rows = [
        _row(run, contestant, mistakes()[name])
        for name in run.plan.mistakes
        for contestant in run.ways
        if contestant not in run.failures
    ]
    ran = [name for name in run.ways if name not in run.failures]
    summaries = [_summary(name, run.versions[name], [row for row in rows if row.contestant == name]) for name in ran]
    return MistakesResult(run.plan.blocks, run.plan.limit_s, tuple(summaries), tuple(rows), run.failures)


def _row(run: MistakesRun, contestant: str, mistake: Mistake) -> MistakeRow:
    way = WAYS[run.ways[contestant]]
    head = (contestant, run.versions.get(contestant, ""), mistake.kind, mistake.name, mistake.what)
    if why := mistake.why_absent(run.ways[contestant], way):
        return MistakeRow(*head, "absent", absent=why)
    own = [each for each in run.planted if (each.contestant, each.mistake) == (contestant, mistake.name)]
    outcomes = [outcome_of(each, mistake, way) for each in own]
    [(outcome, _), *others] = Counter(outcomes).most_common()
    shown = own[outcomes.index(outcome)]
    if shown.seen is None:
        return MistakeRow(*head, outcome, message=shown.lost, differs=bool(others))
    seen = shown.seen
    seconds = [each.seen.seconds for each in own if each.seen is not None and each.seen.raised]
    return MistakeRow(
        *head,
        outcome,
        seen.raised,
        naming_of(seen, mistake, way) if outcome in REPORTED else Naming(),
        over_processes(seconds) if outcome == "error" else None,
        len((seen.printed or seen.warned).splitlines()) if outcome in REPORTED else None,
        _beginning(seen.message or seen.warned) if outcome in REPORTED else "",
        seen.printed or seen.warned,
        bool(others),
    )


def _beginning(message: str) -> str:
    whole = " ".join(message.split())
    return whole if len(whole) <= _MOST_MESSAGE else f"{whole[:_MOST_MESSAGE]} ..."


def outcome_of(planted: Planted, mistake: Mistake, way: Way) -> Outcome:
    seen = planted.seen
    if seen is None:
        return "hang" if planted.hung else "crash"
    if seen.raised:
        return "error"
    if seen.right:
        return "works"
    return "warning" if _is_about(seen.warned, mistake, way) else "silent"


def _is_about(warned: str, mistake: Mistake, way: Way) -> bool:
    """Leave out a warning that names no side and no operator, which may be about anything."""
    return sides_named(warned, mistake.sides(way)) > 0 or names_any(warned, mistake.operators)


def naming_of(seen: MistakeSeen, mistake: Mistake, way: Way) -> Naming:
    text, sides, part = seen.message or seen.warned, mistake.sides(way), mistake.part(way)
    return Naming(
        names_line(seen.printed or seen.warned, mistake.file, mistake.marked_lines(way)),
        sides_named(text, sides) if sides else None,
        len(sides),
        names_sizes(text, mistake.clash) if mistake.clash else None,
        names_any(text, mistake.operators) if mistake.operators else None,
        names_any(text, [part]) if part else None,
    )


def _summary(name: str, version: str, rows: Sequence[MistakeRow]) -> MistakesOfContestant:
    planted = [row for row in rows if row.outcome != "absent"]
    named = [row.named for row in planted if row.outcome in REPORTED]
    errors = [row for row in planted if row.outcome == "error"]
    times = [row.report_s.value for row in errors if row.report_s is not None]
    return MistakesOfContestant(
        name,
        version,
        len(planted),
        dict(Counter(row.outcome for row in planted)),
        _counted([each.line for each in named]),
        _counted([each.both for each in named]),
        _counted([each.operator for each in named]),
        _counted([each.part for each in named]),
        median(times) if times else None,
        median(row.printed_lines or 0 for row in errors) if errors else None,
    )


def _counted(found: Sequence[bool | None]) -> tuple[int, int]:
    known = [each for each in found if each is not None]
    return sum(known), len(known)
