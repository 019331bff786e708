"""Columns and cells of a Markdown table. A column that is empty in every row is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fairlap import quantity_text
from fairlap.errors import shortened
from fairlap.render.judged import common_unit_ns, judged_text
from fairlap.render.scenario_figures import scenario_figures_text
from fairlap.render.scenario_side import columns_of_scenarios, summaries
from fairlap.render.text.scaling import efficiency_text, exchange_text, speed_up_text, straggler_text
from fairlap.render.text.scores import scores_text
from fairlap.render.text.settings_search_text import settings_text
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row

_MOST_CHARACTERS = 120
_HARMLESS_AS_CODE = re.compile(r"[A-Za-z0-9 .,_=~<>!:;/()*+%@#&'\"-]+")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def as_code(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Text that no Markdown reader takes for mark-up, a link or a mention of a person.

    In a code span everything is literal but a backtick, and in a table a bar; a text with anything out of the ordinary
    is written as character references, which are never structure.
    """
    line = " ".join(shortened(text.strip(), most).split())
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
    if not line:
        return ""
    if _HARMLESS_AS_CODE.fullmatch(line):
        return f"`{line}`"
    return f"<code>{_PUNCTUATION.sub(lambda found: f'&#{ord(found[0])};', line)}</code>"


@dataclass(frozen=True)
class ShownColumn:
    head: str
    read: Callable[[Row], str]  # empty when there is nothing to show
    always: bool = False

    def cell(self, row: Row) -> str:
        return self.read(row) or "-"


def columns_shown(rows: Sequence[Row]) -> list[ShownColumn]:
    """Choose the columns; what rows are ranked by has the name that their scenario gives it."""
    by_judged = {
        by: [row for row in rows if row.judged_by == by] for by in dict.fromkeys(row.judged_by for row in rows)
    }
    judged = [ShownColumn(by, partial(_judged, by, common_unit_ns(of))) for by, of in by_judged.items()]
    own = [ShownColumn(each.head, each.text) for each in columns_of_scenarios()]
    of_scenarios = [ShownColumn(each.head, each.text) for each in summaries()]
    columns = [*_WHO, *judged, _RATIO, *own, *_COLUMNS, *of_scenarios, _ALSO]
    return [column for column in columns if column.always or any(column.read(row) for row in rows)]


def _judged(by: str, unit_ns: float | None, row: Row) -> str:
    if row.judged_by != by:
        return ""
    return judged_text(row, unit_ns) or row.outcome.replace("_", " ")


def table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _best_settings(row: Row) -> str:
    return as_code(settings_text(row.found_settings)) if row.division == "best" else ""


def _smallest_memory(row: Row) -> str:
    if row.min_memory_bytes is None:
        return ""
    return f"{quantity_text.size(row.min_memory_bytes)} ({row.min_memory_limit})"


def _cost(row: Row) -> str:
    estimate = row.cost_per_1000_items
    return "" if estimate is None else f"{quantity_text.number(estimate.value)} {as_code(row.currency or '')}"


def _ratio(row: Row) -> str:
    return "" if row.ratio is None else quantity_text.ratio_interval(row.ratio.value, row.ratio.low, row.ratio.high)


def _loadgen(row: Row) -> str:
    """Whether it is valid, and the rate of the server scenario, which ranks nothing."""
    rate = "" if row.loadgen_rate_per_s is None else quantity_text.rate(row.loadgen_rate_per_s.value)
    return ", ".join(filter(None, (rate, as_code(row.loadgen or ""))))


def _of_calls(row: Row, estimate: Estimate | None, text: Callable[[float], str]) -> str:
    """Not beside a median of what the program reports, which is another quantity."""
    return "" if row.reported_ns is not None else _value(estimate, text)


def time_of_a_call(row: Row) -> str:
    """Where that is not what it is ranked by; of fed calls the median may be one that did not wait."""
    ranked_by_calls = row.judged == row.latency_p50_ns or row.pipeline_throughput_per_s is not None
    return "" if ranked_by_calls else _value(row.latency_p50_ns, quantity_text.duration)


def _value(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    return "" if estimate is None else text(estimate.value)


_WHO = (
    ShownColumn("#", lambda row: row.place or "", always=True),
    ShownColumn("contestant", lambda row: as_code(row.contestant), always=True),
    ShownColumn("best settings", _best_settings),
    ShownColumn("version", lambda row: as_code(row.version or "")),
)
_RATIO = ShownColumn("times the baseline", _ratio)
_COLUMNS = (
    ShownColumn("LoadGen", _loadgen),
    ShownColumn("time of a call", time_of_a_call),
    ShownColumn("speed-up", speed_up_text),
    ShownColumn("efficiency", efficiency_text),
    ShownColumn("exchange", exchange_text),
    ShownColumn("straggler", lambda row: as_code(straggler_text(row))),
    ShownColumn("p99", lambda row: _of_calls(row, row.latency_p99_ns, quantity_text.duration)),
    ShownColumn("items/s", lambda row: _of_calls(row, row.throughput_per_s, quantity_text.number)),
    ShownColumn("first token", lambda row: _value(row.time_to_first_token_ns, quantity_text.duration)),
    ShownColumn("per token", lambda row: _value(row.time_per_output_token_ns, quantity_text.duration)),
    ShownColumn("tokens/s", lambda row: _value(row.tokens_per_s, quantity_text.number)),
    ShownColumn("waited", lambda row: _value(row.waited_share, quantity_text.share)),
    ShownColumn("compile, cold", lambda row: _value(row.compile_cold_s, quantity_text.seconds)),
    ShownColumn("compile, warm", lambda row: _value(row.compile_warm_s, quantity_text.seconds)),
    ShownColumn("to first answer", lambda row: _value(row.time_to_first_inference_s, quantity_text.seconds)),
    ShownColumn("to first gradient", lambda row: _value(row.time_to_first_gradient_s, quantity_text.seconds)),
    ShownColumn("peak memory", lambda row: _value(row.peak_memory_bytes, quantity_text.size)),
    ShownColumn("runs in", _smallest_memory),
    ShownColumn("largest batch", lambda row: "" if row.largest_batch is None else f"{row.largest_batch:,}"),
    ShownColumn("energy/item", lambda row: _value(row.energy_per_item_j, lambda j: quantity_text.quantity(j, "J"))),
    ShownColumn("cost/1000 items", _cost),
    ShownColumn(
        "error", lambda row: quantity_text.relative_error(row.error_relative) if row.error_relative is not None else ""
    ),
    ShownColumn("scores", lambda row: ", ".join(scores_text(row))),
)
_ALSO = ShownColumn("also", scenario_figures_text)
