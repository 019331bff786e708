"""The charts of training to a score: what each process had learnt, against time and against steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from fairlap.render.charts.parts.chart import Chart, coloured, named, spec_of
from fairlap.render.charts.parts.chart_tables import Record, key_of
from fairlap.render.charts.parts.libraries import altair
from fairlap.render.charts.parts.look import INK
from fairlap.results.results import Results

_BY_TIME = (
    "One line for each process, one mark for each epoch. Only the time of steps counts. The dashed line is the score "
    "that was asked for."
)
_BY_STEPS = "Contestants of a block take the same batches, so their lines differ by rounding alone."


def learning_charts() -> list[Chart]:
    return [_learning("seconds", "seconds of training", _BY_TIME), _learning("steps", "steps", _BY_STEPS)]


def points(shown: Results) -> Iterator[Record]:
    """One record for each epoch of each process that was scored."""
    for work_result, result, _ in shown.every_row():
        for process in result.finished:
            if process.learning is None:
                continue
            for each in process.learning.scored:
                yield key_of(work_result, result.contestant) | {
                    "block": process.block,
                    "steps": each.steps,
                    "seconds": each.trained_s,
                    "score": each.score,
                    "loss": each.loss,
                    "target": process.learning.target,
                }


@cache
def _learning(field: str, title: str, note: str) -> Chart:
    """``field`` is "seconds" or "steps"."""
    alt = altair()
    shares = alt.Axis(title="score", format=".0%")
    lines = (
        alt.Chart(named("learning"))
        .mark_line(strokeWidth=1.3, opacity=0.8, point={"size": 22, "filled": True})
        .encode(
            x=alt.X(f"{field}:Q", title=title, axis=alt.Axis(format="~s", tickCount=6)),
            y=alt.Y("score:Q", scale=alt.Scale(zero=False), axis=shares),
            color=coloured(),
            detail="block:N",
            order="steps:Q",
            tooltip=_tooltip(),
        )
    )
    target = alt.Chart(named("learning")).mark_rule(strokeDash=[5, 4], color=INK).encode(y="max(target):Q")
    return Chart(
        f"learning_{field}",
        f"Score against {title}",
        note,
        ("learning",),
        spec_of(alt.layer(lines, target).properties(height=280)),
        keyed=True,
    )


def _tooltip() -> list[Any]:
    alt = altair()
    return [
        alt.Tooltip("contestant:N"),
        alt.Tooltip("block:Q"),
        alt.Tooltip("steps:Q"),
        alt.Tooltip("seconds:Q", format=".4~r"),
        alt.Tooltip("score:Q", format=".2%"),
        alt.Tooltip("loss:Q", title="held-out loss", format=".3~r"),
    ]
