"""A load on servers that stream as words: of the command line, and of what was found of a server."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.race.planning.plan import Plan
from fairlap.render.scenario_side import NoCommand, RenderSide, Words
from fairlap.results.row import Row
from fairlap.scenarios.streams.scenario import CERTIFICATES, STARTED

NOT_RESTARTED = (
    "Servers that ran before were not restarted between blocks, and are not stopped while others have their turn: the "
    "verdict is about these servers as they run."
)
NOT_RESTARTED_BUT_STOPPED = (
    "The servers that fairlap started were stopped while others had their turn, and not restarted between blocks: the "
    "verdict is about these processes."
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
        streaming = [row.settings for row in rows if CERTIFICATES in row.settings]
        notes = [NOT_RESTARTED] if any(STARTED not in each for each in streaming) else []
        return [*notes, *([NOT_RESTARTED_BUT_STOPPED] if any(STARTED in each for each in streaming) else [])]
