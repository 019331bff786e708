"""A load on servers that stream as words: of the command line, and of what was found of a server."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.race.planning.plan import Plan
from fairlap.render.scenario_side import NoCommand, RenderSide, Words
from fairlap.results.row import Row
from fairlap.scenarios.load.render.shown import traffic_line
from fairlap.scenarios.streams.results.column_definitions import LoadClient
from fairlap.scenarios.streams.scenario import CERTIFICATES, EACH_BLOCK, STARTED

NOT_RESTARTED = (
    "Servers that ran before were not restarted between blocks, and are not stopped while others have their turn: the "
    "verdict is about these servers as they run."
)
NOT_RESTARTED_BUT_STOPPED = (
    "Servers that fairlap started once were stopped while others had their turn: the verdict is about these processes."
)
RESTARTED = "Servers that fairlap started again for each block did not run while others had their turn."
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
        lines += [_client_line(each) for each in row.load_clients]
        if row.settings.get(STARTED, "").endswith(EACH_BLOCK):
            lines.append(f"its process was started {quantity_text.count(row.processes, 'time')}")
        lines += filter(None, [traffic_line(row)])
        return [*lines, *(["certificates not verified"] if row.settings[CERTIFICATES] == _NOT_VERIFIED else [])]

    def notes(self, rows: Sequence[Row]) -> list[str]:
        started = [row.settings.get(STARTED, "") for row in rows if CERTIFICATES in row.settings]
        again = [each.endswith(EACH_BLOCK) for each in started if each]
        found = (
            (NOT_RESTARTED, not all(started)),
            (RESTARTED, any(again)),
            (NOT_RESTARTED_BUT_STOPPED, not all(again)),
        )
        return [note for note, is_so in found if is_so]


def _client_line(client: LoadClient) -> str:
    adds = client.adds_to_first_token_ns
    parts = [
        quantity_text.count(client.requests, "request"),
        *([] if adds is None else [f"adds {quantity_text.duration(adds)} to a first token"]),
        f"{quantity_text.share(client.core_share)} of a core",
        f"clock known to {quantity_text.duration(client.clock_uncertainty_ns)}",
    ]
    return f"client {client.name}: {', '.join(parts)}"
