"""The last minute as a line of small bars, from 0 to the top. Where nothing was read there is no bar at all."""

from __future__ import annotations

from collections.abc import Iterable

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-:=+*#"  # for outputs that cannot hold blocks


def sparkline(points: Iterable[tuple[float, float]], width: int, now: float, span: float, top: float, bars: str) -> str:
    """``points`` are moments and values; each bar is the mean of its part of the span.

    The parts lie on a grid of time, so that from one drawing to the next only the last bar changes, or all move on.
    """
    if width <= 0:
        return ""
    part = span / width
    sums, counts = [0.0] * width, [0] * width
    for moment, value in points:
        place = width - 1 - int(now // part - moment // part)
        if 0 <= place < width:
            sums[place] += value
            counts[place] += 1
    return "".join(_bar(total / count / top, bars) if count else " " for total, count in zip(sums, counts, strict=True))


def _bar(share: float, bars: str) -> str:
    return bars[min(max(int(share * len(bars)), 0), len(bars) - 1)]
