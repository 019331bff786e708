"""Scores by group as a table for each metric, and which groups change more than the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fairlap import quantity_text
from fairlap.render.document import Section, Table
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.decision.estimate_text import interval_text
from fairlap.results.row import Row
from fairlap.results.slices.slice_score import GroupedScore, SliceScore

NOTE = (
    "A change is a score less that of the contestant that it is compared with. Each group's change is compared with "
    "that of all other items; of all differences that are claimed for a metric, the chance that any is false is at "
    "most 5 %. Brackets are intervals."
)
_HEADS = ("contestant", "group", "items")
_HEADS_OF_CHANGES = ("change", "of the others", "difference", "outcome", "detectable")
OWN_HEADS = (*_HEADS, *_HEADS_OF_CHANGES)  # besides the metric


def group_sections(rows: Sequence[Row]) -> list[Section]:
    """Make one for each metric; nothing where no groups were given."""
    return sections_by_metric(rows, lambda row: row.group_scores, _section)


def sections_by_metric(
    rows: Sequence[Row],
    scores_of: Callable[[Row], Mapping[str, object]],
    section: Callable[[str, Sequence[Row]], Section],
) -> list[Section]:
    """Make one of the rows that have scores by a metric, each contestant's work once."""
    scored = list({(row.contestant, row.work_id): row for row in reversed(rows) if scores_of(row)}.values())[::-1]
    metrics = dict.fromkeys(metric for row in scored for metric in scores_of(row))
    return [section(metric, [row for row in scored if metric in scores_of(row)]) for metric in metrics]


def _section(metric: str, rows: Sequence[Row]) -> Section:
    names = names_apart(rows)
    cells = [
        (name, *_cells(each)) for name, row in zip(names, rows, strict=True) for each in row.group_scores[metric].groups
    ]
    title = f"Groups: {metric}"
    heads = (*_HEADS, metric, *_HEADS_OF_CHANGES)
    notes = [note for name, row in zip(names, rows, strict=True) for note in _notes(name, row.group_scores[metric])]
    return Section(title, [Table(title, heads, cells).without_empty_columns(after=len(_HEADS) + 1)], notes)


def names_apart(rows: Sequence[Row]) -> list[str]:
    """Name contestants with their precision and model where there are several of these."""
    models, precisions = ({getattr(row, name) for row in rows} for name in ("workload", "precision"))
    found = []
    for row in rows:
        precision = f" in {row.precision}" if len(precisions) > 1 and f"({row.precision})" not in row.contestant else ""
        found.append(f"{row.contestant}{precision}{f' on {row.workload}' if len(models) > 1 else ''}")
    return found


def _cells(each: SliceScore) -> tuple[str, ...]:
    return (
        each.name,
        "" if each.score is None else f"{each.score.items:,}",
        "" if each.score is None else interval_text(Estimate(each.score.value, each.score.low, each.score.high)),
        *change_cells(each),
    )


def change_cells(each: SliceScore) -> tuple[str, ...]:
    return (
        *("" if change is None else signed(change) for change in (each.change, each.elsewhere)),
        "" if each.apart is None else apart_text(each.apart),
        each.outcome or "",
        "" if each.detectable is None else quantity_text.number(each.detectable, 2),
    )


def signed(value: float) -> str:
    """Zero has no sign, whichever side a comparison was read from."""
    return f"{'+' if value > 0 else ''}{quantity_text.number(value + 0.0)}"


def apart_text(found: Estimate) -> str:
    assert found.low is not None
    assert found.high is not None
    return f"{signed(found.value)} [{signed(found.low)}, {signed(found.high)}]"


def _notes(name: str, found: GroupedScore) -> Iterator[str]:
    if found.largest_difference is not None:
        yield f"{name}: groups differ by {quantity_text.number(found.largest_difference)} at most."
    apart = [each for each in found.groups if each.outcome in ("better", "worse")]
    from_to = f"From {found.against} to {name}"
    for each in apart:
        assert each.apart is not None
        text = f"{from_to}, {each.name} changes for the {each.outcome} compared with the others"
        yield f"{text}: {apart_text(each.apart)}."
    judged = [each.outcome for each in found.groups if each.outcome]
    if judged and not apart:
        alike = all(outcome == "equivalent" for outcome in judged)
        shown = "all groups change alike" if alike else "no group is shown to change more than the others"
        yield f"{from_to}, {shown}."
    for why in dict.fromkeys(each.why_not for each in found.groups if each.why_not):
        without = [each.name for each in found.groups if each.why_not == why]
        yield f"{from_to}, there is no verdict on {', '.join(without)}: {why}."
