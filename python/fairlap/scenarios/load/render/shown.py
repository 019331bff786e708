"""A race of load as words: of the command line, and of what was found of a contestant; and the bounds of its charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from fairlap import quantity_text
from fairlap.race.planning.plan import Plan
from fairlap.render.charts.parts.chart import Chart
from fairlap.render.scenario_side import RenderSide, Summary, Words, number_word
from fairlap.request.fields.load import Load
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.scenarios.load.loadgen_messages import BOUNDS, BY_THE_PATH, WHY_INVALID
from fairlap.scenarios.load.render.chart import SECTION, latency_against_rate, points


def _text(field: str, row: Row, *, is_rate: bool = False) -> str:
    value: Estimate | str | None = getattr(row, field)
    if value is None or isinstance(value, str):
        return value or ""
    if is_rate:
        return quantity_text.figure(value.value, "1/s", value.low, value.high)
    return quantity_text.duration(value.value)


def _of(head: str, field: str, *, is_rate: bool = False) -> Summary:
    return Summary(head, field, partial(_text, field, is_rate=is_rate))


COLUMNS = (
    _of("p50 at this rate", "latency_at_largest_rate_p50_ns"),
    _of("p90 at this rate", "latency_at_largest_rate_p90_ns"),
    _of("p99 at this rate", "latency_at_largest_rate_p99_ns"),
    _of("first token p50", "first_token_at_largest_rate_p50_ns"),
    _of("first token p99", "first_token_at_largest_rate_p99_ns"),
    _of("per token p50", "output_token_at_largest_rate_p50_ns"),
    _of("per token p99", "output_token_at_largest_rate_p99_ns"),
    _of("tokens per second", "tokens_at_largest_rate_per_s", is_rate=True),
    _of("capacity", "capacity_per_s", is_rate=True),
    _of("limited by", "largest_rate_limited_by"),
)


def _bounds(shown: Results) -> Iterator[dict[str, Any]]:
    for each in shown.work_results:
        for text, seconds in each.work.load.bounds if each.work.load else ():
            yield {"work_id": each.work.id, "conditions": each.conditions, "bound": text, "ns": 1e9 * seconds}


_MEANINGS = {name.replace("_", " "): why for name, why in WHY_INVALID.items()}  # as rows have them


_OF_LENGTH = {"duration", "queries", "early stopping"}
TOO_SHORT = "it was too short to confirm the figure, which stands; a longer --trial may do"

_PATH = (
    "LoadGen reaches contestants through Python, and at this rate misses the bound even where one answers at once: its "
    "INVALID is no finding about the contestant. The largest rate, which fairlap's native load found, stands."
)


_BESIDE_A_RATE = (
    "LoadGen reaches contestants through Python, which takes time of every request; the largest rate is that of "
    "fairlap's native load, which does not, and stands."
)


class LoadShown(RenderSide):
    lacks = frozenset({"--mode"})
    columns = COLUMNS
    tables: ClassVar = {"load": points, "load_bounds": _bounds}
    sections: ClassVar = {SECTION: "Latency under load"}

    def charts(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Chart]:
        return [latency_against_rate()] if tables["load"] else []

    def words(self, plan: Plan) -> Words:
        """Of the first work: all have the same load."""
        load = plan.works[0].load
        assert load is not None
        return _words(load)

    def lines(self, row: Row) -> list[str]:
        """Describe the largest rate, where its latency begins to rise, and what LoadGen reports."""
        loadgen = [] if row.loadgen is None else [f"LoadGen: {row.loadgen}"]
        if row.largest_rate_per_s is not None and row.loadgen_rate_per_s is not None:
            loadgen = [f"LoadGen at {quantity_text.rate(row.loadgen_rate_per_s.value)}: {row.loadgen}"]
        return [*filter(None, [at_largest_rate(row), traffic_line(row)]), *_tokens(row), *loadgen]

    def notes(self, rows: Sequence[Row]) -> list[str]:
        invalid = [row for row in rows if row.loadgen and row.loadgen.startswith("INVALID")]
        of_rows = [str(row.loadgen).partition(": ")[2].removesuffix(BY_THE_PATH).split(", ") for row in invalid]
        reasons = {reason for own in of_rows for reason in own}
        meanings = [f"{why} ({name})" for name, why in _MEANINGS.items() if name in reasons]
        too_short = f": {TOO_SHORT}" if reasons and reasons <= _OF_LENGTH else ""
        notes = (
            [f"INVALID: LoadGen rejects the run by the rules of MLPerf, since {'; and '.join(meanings)}{too_short}."]
            if meanings
            else []
        )
        if any(str(row.loadgen).endswith(BY_THE_PATH) for row in invalid):
            return [*notes, _PATH]
        bounds = {name.replace("_", " ") for name in BOUNDS}
        beside = any(row.largest_rate_per_s and bounds & {*own} for row, own in zip(invalid, of_rows, strict=True))
        return [*notes, _BESIDE_A_RATE] if beside else notes


def _words(load: Load) -> Words:
    words: Words = []
    if load.searches and load.bound_s is not None:
        words += [f"--p{number_word(100 * load.percentile)}", f"{number_word(load.bound_s)}s"]
    words += [] if load.first_token_s is None else ["--first-token", f"{number_word(load.first_token_s)}s"]
    words += ["--workers", str(load.workers)] if load.scenario is None else ["--scenario", load.scenario]
    words += ["--logs", load.logs] if load.logs else []
    if load.traffic is not None:
        words += ["--users", str(load.traffic.users), "--think", f"{number_word(load.traffic.think_s)}s"]
    words += ["--largest-batch", str(load.largest_batch)] if load.largest_batch > 1 else []
    words += ["--longest-wait", f"{number_word(load.longest_wait_s)}s"] if load.longest_wait_s else []
    return [*words, "--trial", f"{number_word(load.trial_s)}s"]


def traffic_line(row: Row) -> str:
    """Say how many instances serve the traffic, and their price; empty where no traffic was given."""
    found, users = row.instances, row.users_per_instance
    if found is None or users is None or row.traffic_per_s is None:
        return ""
    few = found.low is not None and found.high is not None and found.low != found.high
    interval = f" ({found.low:,.0f} to {found.high:,.0f})" if few else ""
    asked, needed = quantity_text.rate(row.traffic_per_s.value), quantity_text.count(int(found.value), "instance")
    cost = row.cost_of_instances_per_hour
    price = "" if cost is None else f", {quantity_text.number(cost.value)} {row.currency or ''} an hour"
    return f"{asked} of all users: {needed}{interval}{price}; one serves {quantity_text.number(users.value)} users"


def at_largest_rate(row: Row) -> str:
    """Empty where there is no such rate."""
    p50, p99 = row.latency_at_largest_rate_p50_ns, row.latency_at_largest_rate_p99_ns
    if p50 is None or p99 is None or row.largest_rate_per_s is None:
        return ""
    parts = [f"p50 {quantity_text.duration(p50.value)}, p99 {quantity_text.duration(p99.value)} at this rate"]
    if row.issue_lateness_p99_ns is not None:
        parts.append(f"issued {quantity_text.duration(row.issue_lateness_p99_ns.value)} late (p99)")
    if row.capacity_per_s is not None:
        parts.append(f"capacity {quantity_text.rate(row.capacity_per_s.value)}")
    if row.knee_rate_per_s is not None:
        parts.append(f"knee, a p99 over twice that of lone requests, at {quantity_text.rate(row.knee_rate_per_s)}")
    if row.mean_batch_at_largest_rate is not None and row.mean_batch_at_largest_rate > 1:
        parts.append(f"{quantity_text.number(row.mean_batch_at_largest_rate, 2)} requests per call")
    if row.first_request_s is not None:
        parts.append(f"first request {quantity_text.seconds(row.first_request_s.value)}")
    return "; ".join(parts)


def _tokens(row: Row) -> list[str]:
    """At the largest rate, the first token from when its request was due."""
    first50, first99 = row.first_token_at_largest_rate_p50_ns, row.first_token_at_largest_rate_p99_ns
    each50, each99 = row.output_token_at_largest_rate_p50_ns, row.output_token_at_largest_rate_p99_ns
    rate = row.tokens_at_largest_rate_per_s
    if first50 is None or first99 is None or each50 is None or each99 is None or rate is None:
        return []
    return [
        f"first token p50 {quantity_text.duration(first50.value)}, p99 {quantity_text.duration(first99.value)}; "
        f"per token p50 {quantity_text.duration(each50.value)}, p99 {quantity_text.duration(each99.value)}; "
        f"{quantity_text.number(rate.value)} tokens/s"
    ]
