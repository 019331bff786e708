"""The work that a race measures, and the conditions under which its processes run."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlap.request.source import Source

Mode = Literal["infer", "grad"]


Precision = Literal["fp32", "bf16"]


Conditions = Literal["controlled", "as-found"]


class Work(msgspec.Struct, frozen=True):
    """One model at one batch size, in one mode and precision."""

    model: str
    batch: int
    mode: Mode = "infer"
    precision: Precision = "fp32"
    source: Source | None = None  # of a user's own model; then ``model`` is its name

    @property
    def label(self) -> str:
        return f"{self.model} · {self.mode} · {self.precision} · batch {self.batch}"


def work_title(label: str, data: str) -> str:
    """A work for people: its label, and what its calls were fed where they were fed anything."""
    return f"{label} · fed {data}" if data else label
