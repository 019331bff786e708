"""Something that is not there, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Absence:
    source: str
    metrics: tuple[str, ...]  # that it lacks; none: the whole source
    why: str

    @property
    def what(self) -> str:
        return f"{self.source}: {'; '.join(self.metrics)}" if self.metrics else self.source

    @property
    def shortly(self) -> str:
        more = f" and {len(self.metrics) - 1} more" if len(self.metrics) > 1 else ""
        return f"{self.source}: {self.metrics[0].replace('_', ' ')}{more}" if self.metrics else self.source
