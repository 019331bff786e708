"""A choice as a document: the recommendation, the front, the candidates, and what is shown between them."""

from __future__ import annotations

from functools import partial
from typing import Any

from fairlap import quantity_text
from fairlap.render.choice.chart import chart_of
from fairlap.render.choice.shared_words import answer, drawable, how_to_read, score_of
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.render.text.decision import MARKS
from fairlap.results.choice.choice import Candidate, Choice, ScoreDifference, TimeRatio
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.decision.estimate_text import estimate_text, interval_text

_TITLE = "Choice of a model"
_FIGURES = ("score", "time_per_item_ns", "peak_memory_bytes", "energy_per_item_j", "cost_per_1000_items")
_MINIMISED = {
    "energy": "energy_per_item_j",
    "memory": "peak_memory_bytes",
    "cost": "cost_per_1000_items",
    "size": "file_bytes",
}
_NAMES = (
    "candidate",
    "model",
    "contestant",
    "batch",
    "outcome",
    *_FIGURES,
    "currency",
    "file_bytes",
    "qualifies",
    "front",
)


def document_of(choice: Choice) -> Document:
    picture = Picture("Score against time of an item", partial(chart_of, choice, alone=False), how_to_read(choice))
    return Document(
        title=_TITLE,
        facts=(answer(choice), setting(choice), *_interrupted(choice)),
        sections=[
            Section("Candidates", [_candidates(choice)], _notes(choice)),
            Section("Score against time", picture=picture if drawable(choice) else None),
            Section(f"Differences in {choice.metric}", _score_tables(choice), _because(choice.no_score_verdict)),
            Section("Ratios of times", _time_tables(choice), _because(_no_time(choice))),
        ],
        data=choice,
        records=_records(choice),
        draw=partial(chart_of, choice, alone=True),
    )


def _interrupted(choice: Choice) -> tuple[str, ...]:
    return ("Interrupted: this is what the rounds before it show.",) if choice.interrupted else ()


def setting(choice: Choice) -> str:
    rounds = quantity_text.count(choice.blocks, "round")
    items = f"{choice.items:,} items, on {choice.items_disagreeing:,} of which candidates disagree"
    better = "higher" if choice.better == "higher" else "lower"
    return f"{choice.metric} ({better} is better) of {items}; times of {rounds}. Brackets are intervals."


def _candidates(choice: Choice) -> Table:
    figures = ["time of an item", "peak memory", "energy of an item", "cost of 1,000", "files"]
    rows = [
        [
            each.name,
            _text(score_of(each), ""),
            *(_text(getattr(each, column), column) for column in _FIGURES[1:4]),
            _cost(each),
            "" if each.file_bytes is None else quantity_text.size(each.file_bytes),
            each.front,
            MARKS[each.qualifies] if choice.requirements else "",
        ]
        for each in choice.candidates
    ]
    heads = ["candidate", choice.metric, *figures, "front", "requirements"]
    return Table("Candidates", heads, rows).without_empty_columns(1)


def _text(found: Estimate | None, column: str) -> str:
    if found is None:
        return ""
    return estimate_text(column, found) if column else interval_text(found)


def _cost(each: Candidate) -> str:
    return "" if each.cost_per_1000_items is None else f"{interval_text(each.cost_per_1000_items)} {each.currency}"


def _notes(choice: Choice) -> list[str]:
    found = _without_figure(choice)
    for each in choice.candidates:
        if each.front == "not compared":
            code = f" [{each.code}]" if each.code else ""
            found.append(f"{each.name} is not compared: {each.message or 'it has no score'}{code}")
        elif each.dominated_by:
            found.append(f"{each.name} is dominated by {', '.join(each.dominated_by)}")
        elif each.may_be_dominated_by:
            found.append(f"{each.name} may be dominated by {', '.join(each.may_be_dominated_by)}")
        if each.reasons and each.front != "not compared":
            reasons = "; ".join(f"{requirement}: {why}" for requirement, why in each.reasons.items())
            found.append(f"{MARKS[each.qualifies]}: {each.name} ({reasons})")
    return found


def _without_figure(choice: Choice) -> list[str]:
    """Explain why candidates lack what is minimised."""
    column = _MINIMISED.get(choice.minimise or "", "")
    reasons = dict.fromkeys(each.absent[column] for each in choice.candidates if column in each.absent)
    return [f"no {choice.minimise}: {why}" for why in reasons]


def _score_tables(choice: Choice) -> list[Table]:
    if not choice.scores:
        return []
    heads = ["first", "second", "difference", "outcome", "only first right", "only second right", "items", "detectable"]
    return [Table("Pairs by score", heads, [_score_cells(each) for each in choice.scores]).without_empty_columns(4)]


def _score_cells(each: ScoreDifference) -> list[str]:
    return [
        each.a,
        each.b,
        interval_text(Estimate(each.difference, each.low, each.high)),
        each.outcome,
        *("" if count is None else str(count) for count in (each.only_a_right, each.only_b_right)),
        str(each.items_differing) if each.only_a_right is None else "",
        quantity_text.number(each.detectable, 2),
    ]


def _time_tables(choice: Choice) -> list[Table]:
    if not choice.times:
        return []
    heads = ["first", "second", "times as long", "outcome", "detectable"]
    return [Table("Pairs by time of an item", heads, [_time_cells(each) for each in choice.times])]


def _time_cells(each: TimeRatio) -> list[str]:
    detectable = "" if each.detectable is None else quantity_text.share(each.detectable)
    return [each.a, each.b, quantity_text.ratio_interval(each.ratio, each.low, each.high), each.outcome, detectable]


def _no_time(choice: Choice) -> str:
    return f"{choice.no_time_verdict} [{choice.no_time_code}]" if choice.no_time_code else choice.no_time_verdict


def _because(why: str) -> list[str]:
    return [f"no verdict: {why}"] if why else []


def _records(choice: Choice) -> Records:
    rows: list[list[Any]] = [
        [
            *(each.name, each.model, each.contestant, each.batch, each.outcome, score_of(each)),
            *(getattr(each, column) for column in _FIGURES[1:]),
            *(each.currency, each.file_bytes, each.qualifies, each.front),
        ]
        for each in choice.candidates
    ]
    return Records(_NAMES, rows, _FIGURES)
