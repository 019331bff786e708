"""Score against time of an item: points with intervals, whose form shows which are on the front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.render.charts.parts.chart import measured_axis, ratio_scale, spec_of, with_ends, with_title
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look
from fairlap.render.choice.shared_words import answer, drawable, how_to_read, score_of, sizes_differ
from fairlap.results.choice.choice import Choice

ON, MAYBE, DOMINATED = "on the front", "may be on it", "dominated"
SHAPES = {ON: "circle", MAYBE: "diamond", DOMINATED: "cross"}
_WIDTH, _HEIGHT = 620, 340
_LIFTS = (-9, 14, -23, 28)  # of a name above or below its point, in turn
_CHARACTERS = 100  # of a line of the title


def chart_of(choice: Choice, look: Look, *, alone: bool) -> str:
    """Draw it as a picture that stands ``alone``, with its title, or for a page, which has the title."""
    points = chart_points(choice)
    if not points:
        raise InvalidRequest("there is nothing to draw: no candidate has both a score and a time", code="E_CHOOSE")
    alt = altair()
    x = alt.X("time:Q", scale=ratio_scale(), axis=measured_axis("duration", "time of an item"))
    y = alt.Y("score:Q", scale=alt.Scale(zero=False, padding=14), axis=measured_axis("plain", choice.metric))
    shown = [each for each in SHAPES if any(point["front"] == each for point in points)]
    shape = alt.Shape(
        "front:N",
        scale=alt.Scale(domain=shown, range=[SHAPES[each] for each in shown]),
        legend=alt.Legend(title=None, orient="top"),
    )
    base = alt.Chart(alt.Data(values=points))
    colour = look.colours(1)[0]
    rule = {"strokeWidth": 2, "opacity": 0.4, "color": look.muted}
    across = base.mark_rule(**rule).encode(x=alt.X("time_low:Q"), x2="time_high:Q", y=y)
    upright = base.mark_rule(**rule).encode(x=x, y=alt.Y("score_low:Q"), y2="score_high:Q")
    filled = base.transform_filter(f"datum.front == '{ON}'").mark_point(size=130, filled=True, opacity=1, color=colour)
    hollow = base.transform_filter(f"datum.front != '{ON}'").mark_point(
        size=110, filled=False, opacity=1, strokeWidth=2, color=colour
    )
    size = {"size": _by_bytes(alt)} if sizes_differ(choice) else {}
    marks = [each.encode(x=x, y=y, shape=shape, **size) for each in (filled, hollow)]
    chart = alt.layer(across, upright, *marks, *_labels(points, base, look, x=x, y=y)).properties(
        width=_WIDTH, height=_HEIGHT
    )
    if alone:
        text = f"{answer(choice)} {how_to_read(choice)}"
        chart = with_title(chart, f"{choice.metric} against time of an item", text, _CHARACTERS)
    return drawn(spec_of(chart), look)


def _by_bytes(alt: Any) -> Any:
    """Areas grow with the files."""
    return alt.Size("bytes:Q", scale=alt.Scale(type="sqrt", range=[60, 400], zero=False), legend=None)


def _labels(points: Sequence[dict[str, Any]], base: Any, look: Look, **place: Any) -> list[Any]:
    """Write each name beside its point, on the side with room, and not on the line of the one before it."""
    found = []
    for side, lift in sorted({(point["side"], point["lift"]) for point in points}):
        own = base.transform_filter(f"datum.side == '{side}' && datum.lift == {lift}")
        text = own.mark_text(
            align="left" if side == "right" else "right",
            dx=11 if side == "right" else -11,
            dy=lift,
            fontSize=11,
            color=look.ink,
        )
        found.append(text.encode(text="label:N", **place))
    return found


def chart_points(choice: Choice) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    several = len({each.contestant for each in choice.candidates}) > 1
    for each in drawable(choice):
        score, time = score_of(each), each.time_per_item_ns
        if score is not None and time is not None:
            names = {"candidate": each.name, "label": each.name if several else each.model, "front": each.front}
            ends = {**with_ends("score", score), **with_ends("time", time)}
            found.append({**names, "bytes": each.file_bytes, **ends})
    found.sort(key=lambda point: float(point["time"]))
    for place, point in enumerate(found):
        is_left = point["time"] ** 2 <= found[0]["time"] * found[-1]["time"]  # of the middle of a logarithmic axis
        point["side"], point["lift"] = "right" if is_left else "left", _LIFTS[place % len(_LIFTS)]
    return found
