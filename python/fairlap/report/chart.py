"""What a chart is: a description without data, the tables it draws, and what to say where they are empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Scope = Literal["work", "both conditions", "batches"]
"""What it draws of what a reader has chosen: the work under one kind of conditions; the work under both;
or the work at all its batch sizes."""


@dataclass(frozen=True)
class Chart:
    key: str
    title: str
    told: str  # how to read it, in a sentence or two
    tables: tuple[str, ...]  # the first one must not be empty
    spec: dict[str, Any]
    absent: str = ""  # why it is not there; the description is empty then
    scope: Scope = "work"
    row_height: int = 44  # of one contestant's line; charts that have a height of their own ignore it
    keyed: bool = False  # its colours need a key: contestants have no rows of their own
    section: str = "speed"


def left_out(key: str, title: str, why: str, *, section: str = "speed") -> Chart:
    return Chart(key, title, "", (), {}, absent=why, section=section)


def described(chart: Any) -> dict[str, Any]:
    """Altair's description without its default look, which only the reader's paper decides."""
    told: dict[str, Any] = chart.to_dict()
    told.pop("config", None)
    return told
