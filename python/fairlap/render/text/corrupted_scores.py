"""Scores on corrupted data as a table for each metric, and which contestants lose more there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlap import quantity_text
from fairlap.render.document import Section, Table
from fairlap.render.text.group_scores import apart_text, change_cells, names_apart, sections_by_metric
from fairlap.results.row import Row
from fairlap.results.slices.slice_score import CorruptedScore, SliceScore

NOTE = (
    "Columns 1 to 5 are severities. A change is the mean score under a corruption less that of the contestant that it "
    "is compared with, and it is compared with the change on the data as they are, item by item. The corruption error "
    "is the error divided by that contestant's. Of all differences that are claimed for a metric, the chance that any "
    "is false is at most 5 % for the means over corruptions, and again for single ones. Brackets are intervals."
)
_SEVERITIES = ("1", "2", "3", "4", "5")
HEADS = (
    *("contestant", "corruption", "none", *_SEVERITIES, "mean", "corruption error"),
    *("change", "without corruption", "difference", "outcome", "detectable"),
)
_ALWAYS = 3
_ALL = "all"


def corrupted_sections(rows: Sequence[Row]) -> list[Section]:
    """Make one for each metric; nothing where no corruptions were asked for."""
    return sections_by_metric(rows, lambda row: row.corrupted_scores, _section)


def _section(metric: str, rows: Sequence[Row]) -> Section:
    named = list(zip(names_apart(rows), rows, strict=True))
    cells = [each for name, row in named for each in _cells(name, metric, row)]
    notes = [note for name, row in named for note in _notes(name, row.corrupted_scores[metric])]
    title = f"Corrupted data: {metric}"
    return Section(title, [Table(title, HEADS, cells).without_empty_columns(after=_ALWAYS)], notes)


def _cells(name: str, metric: str, row: Row) -> Iterator[tuple[str, ...]]:
    found, whole = row.corrupted_scores[metric], row.scores.get(metric)
    clean = "" if whole is None else quantity_text.number(whole.value)
    for corruption, each in found.corruptions.items():
        severities = [each.by_severity.get(severity) for severity in _SEVERITIES]
        yield (
            *(name, corruption, clean),
            *("" if score is None else quantity_text.number(score.value) for score in severities),
            *(_number(each.mean), _number(each.corruption_error), *change_cells(each.slice)),
        )
    if len(found.corruptions) > 1:
        means = (_number(found.mean), _number(found.mean_corruption_error))
        yield (name, _ALL, clean, *("" for _ in _SEVERITIES), *means, *change_cells(found.all))


def _number(value: float | None) -> str:
    return "" if value is None else quantity_text.number(value)


def _notes(name: str, found: CorruptedScore) -> Iterator[str]:
    if not found.against:
        return
    from_to = f"From {found.against} to {name}"
    yield f"{from_to}, {_sentence(found.all, 'corrupted data')}."
    single = [each.slice for each in found.corruptions.values()]
    for each in single if len(single) > 1 else ():
        if each.outcome in ("better", "worse"):
            yield f"{from_to}, {_sentence(each, each.name)}."


def _sentence(found: SliceScore, where: str) -> str:
    if found.outcome is None or found.apart is None:
        return f"there is no verdict on {where}: {found.why_not}"
    if found.outcome == "equivalent":
        return f"the score changes alike on {where} and without corruption: {apart_text(found.apart)}"
    if found.outcome == "inconclusive":
        return f"no difference is shown between {where} and the data as they are: {apart_text(found.apart)}"
    more = "loses more" if found.outcome == "worse" else "loses less"
    return f"the score {more} on {where} than without corruption: {apart_text(found.apart)}"
