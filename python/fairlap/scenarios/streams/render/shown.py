"""A load on servers that stream as words: of the command line, and of what was found of a server."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.race.planning.plan import Plan
from fairlap.render.scenario_side import NoCommand, RenderSide, Words
from fairlap.results.row import Row
from fairlap.scenarios.streams.scenario import CERTIFICATES

NOT_RESTARTED = (
    "The servers were not restarted between blocks, and are not frozen while others have their turn: the verdict is "
    "about these servers as they run."
)
_NOT_VERIFIED = "not verified"


class StreamsShown(RenderSide):
    def words(self, plan: Plan) -> Words:
        """Leave it to the saved plan, which knows what the prompts were."""
        raise NoCommand

    def lines(self, row: Row) -> list[str]:
        if CERTIFICATES not in row.settings:
            return []
        parts = [
            f"{name} {quantity_text.duration_interval(each.value, each.low, each.high)}"
            for name, each in (("p50", row.latency_p50_ns), ("p90", row.latency_p90_ns), ("p99", row.latency_p99_ns))
            if each is not None
        ]
        lines = [f"whole answers: {', '.join(parts)}"] if parts else []
        rates = [
            f"{quantity_text.figure(each.value, '1/s', each.low, each.high)} {name}"
            for name, each in (("answers", row.throughput_per_s), ("tokens per user", row.tokens_per_prompt_per_s))
            if each is not None
        ]
        lines += [", ".join(rates)] if rates else []
        return [*lines, *(["certificates not verified"] if row.settings[CERTIFICATES] == _NOT_VERIFIED else [])]

    def notes(self, rows: Sequence[Row]) -> list[str]:
        return [NOT_RESTARTED] if any(CERTIFICATES in row.settings for row in rows) else []
