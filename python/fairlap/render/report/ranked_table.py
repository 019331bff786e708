"""The ranked table: place, time and ratio with their intervals, resources, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.models.modes import MODES
from fairlap.render.judged import common_unit_ns, judged_and_bounds, modes_texts
from fairlap.render.report.markup import Markup, breaking, table, tag
from fairlap.render.scenario_figures import scenario_figures_text
from fairlap.render.scenario_side import Summary, columns_of_scenarios, summaries
from fairlap.render.text.contestant_lines import causes_of_modes, codes_of_a_contestant
from fairlap.render.text.scores import scores_text
from fairlap.render.text.settings_search_text import settings_text
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import ContestantResult, WorkResult

# Columns that are left out where no row has a value; between them those of scenarios.
_IF_ANY: Mapping[str, Callable[[Row], object]] = {
    "first token": lambda row: row.time_to_first_token_ns,
    "per token": lambda row: row.time_per_output_token_ns,
    "tokens per second": lambda row: row.tokens_per_s,
    "scores": lambda row: row.scores,
    "LoadGen": lambda row: row.loadgen,
}
_IF_ANY_LAST: Mapping[str, Callable[[Row], object]] = {
    "also": lambda row: row.scenario_figures or row.scenario_absent,
    "1,000 items": lambda row: row.cost_per_1000_items,
    "runs in": lambda row: row.min_memory_bytes,
    "largest batch": lambda row: row.largest_batch,
    "energy per item": lambda row: row.energy_per_item_j,
}

Cells = dict[str, Markup | str]
_FIRST = {"inference": "output", "gradient": "gradient"}
_TIME_OF_A_CALL = "time of a call"


def ranked_table(shown: Results, work_result: WorkResult) -> Markup:
    first = f"first {_FIRST[MODES[work_result.work.mode].first_answer]}"
    against = f"against {shown.baseline}" if shown.baseline else "against the first"
    judged = work_result.basis.judged
    if judged.better == "higher":
        against = f"{judged.by} of {shown.baseline or 'the first'} over its own"
    rows_of_work = [row for _, row in work_result.with_rows()]
    longest = max((row.judged.value for row in rows_of_work if row.judged), default=0.0)
    own = [column for column in columns_of_scenarios() if any(map(column.text, rows_of_work))]
    apart = bool(own) or any(row.reported_ns for row in rows_of_work)  # what is ranked are no calls
    heads = ["place", "contestant", judged.by, against, *(column.head for column in own)]
    heads += [] if apart else ["p99", "per second"]
    heads += [_TIME_OF_A_CALL] if apart or not judged.of_rounds else []
    heads += [first, "peak memory", "error"]
    units = _Units.of(rows_of_work)
    rows = [
        _cells(shown, result, row, longest, units, (judged.by, against, first)) | _of_scenario(row, own)
        for result, row in work_result.with_rows()
    ]
    names = [result.contestant for result, _ in work_result.with_rows()]
    if_any = {**_IF_ANY, **{each.head: each.text for each in summaries()}, **_IF_ANY_LAST}
    heads += [head for head, has in if_any.items() if any(map(has, rows_of_work))]
    caption = f"{shown.run.plan.title_of(work_result.work)}, {work_result.conditions}"
    return table(caption, heads, rows, "ranked cards", names)


@dataclass(frozen=True)
class _Units:
    """Of a table's columns of times, each of which is read in one unit where one suits all rows."""

    judged_ns: float | None
    p99_ns: float | None
    first_ns: float | None

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Units:
        p99 = quantity_text.common_unit_ns(row.latency_p99_ns.value for row in rows if row.latency_p99_ns)
        first = quantity_text.common_unit_ns(1e9 * each.value for row in rows if (each := _to_first(row)))
        return cls(common_unit_ns(rows), p99, first)


def _to_first(row: Row) -> Estimate | None:
    return row.time_to_first_gradient_s or row.time_to_first_inference_s


def _time(duration_ns: float, unit_ns: float | None) -> str:
    return quantity_text.duration_and_bounds(duration_ns, None, None, unit_ns=unit_ns)[0]


def _cells(
    shown: Results, result: ContestantResult, row: Row, longest: float, units: _Units, heads: tuple[str, str, str]
) -> Cells:
    judged, against, first = heads
    to_first, p99 = _to_first(row), row.latency_p99_ns
    cost, memory, error = row.cost_per_1000_items, row.peak_memory_bytes, row.error_relative
    energy, tokens = row.energy_per_item_j, row.tokens_per_s
    return {
        "place": tag("span", row.place or "–", class_="place", title=row.absent.get("place")),
        "contestant": _contestant(shown, result, row),
        judged: _judged(shown, result, row, longest, units.judged_ns),
        against: _ratio(row),
        _TIME_OF_A_CALL: _duration(row, "latency_p50_ns", row.latency_p50_ns),
        "p99": _or_dash(row, "latency_p99_ns", p99 and _time(p99.value, units.p99_ns)),
        "per second": _or_dash(row, "throughput_per_s", row.throughput_per_s and _rate(row)),
        first: _or_dash(row, "time_to_first_inference_s", to_first and _time(1e9 * to_first.value, units.first_ns)),
        "peak memory": _or_dash(row, "peak_memory_bytes", memory and quantity_text.size(memory.value)),
        "error": _or_dash(row, "error_relative", None if error is None else quantity_text.relative_error(error)),
        "first token": _duration(row, "time_to_first_token_ns", row.time_to_first_token_ns),
        "per token": _duration(row, "time_per_output_token_ns", row.time_per_output_token_ns),
        "tokens per second": _or_dash(row, "tokens_per_s", tokens and quantity_text.number(tokens.value)),
        "scores": ", ".join(scores_text(row)) or "–",
        **{each.head: _or_dash(row, each.field, each.text(row)) for each in summaries()},
        "also": scenario_figures_text(row) or _dash("; ".join(row.scenario_absent.values())),
        "LoadGen": _or_dash(row, "loadgen", row.loadgen),
        "runs in": _or_dash(row, "min_memory_bytes", _smallest_memory(row)),
        "largest batch": _or_dash(row, "largest_batch", row.largest_batch and f"{row.largest_batch:,}"),
        "energy per item": _or_dash(row, "energy_per_item_j", energy and quantity_text.quantity(energy.value, "J")),
        "1,000 items": _or_dash(
            row, "cost_per_1000_items", cost and f"{quantity_text.number(cost.value)} {row.currency}"
        ),
    }


def _of_scenario(row: Row, columns: Sequence[Summary]) -> Cells:
    return {column.head: _or_dash(row, column.field, column.text(row)) for column in columns}


def _smallest_memory(row: Row) -> str:
    """With the kind of the limit: address space is not resident memory."""
    return f"{quantity_text.size(row.min_memory_bytes)}, {row.min_memory_limit}" if row.min_memory_bytes else ""


def _duration(row: Row, field: str, estimate: Estimate | None) -> Markup | str:
    if estimate is None:
        return _or_dash(row, field, None)
    return quantity_text.duration_interval(estimate.value, estimate.low, estimate.high)


def _rate(row: Row) -> str:
    return quantity_text.rate(row.throughput_per_s.value) if row.throughput_per_s else ""


def _or_dash(row: Row, field: str, text: object) -> Markup | str:
    """Show an absent value as a dash with its reason as tooltip and label, never as 0."""
    return str(text) if text else _dash(row.absent.get(field, "it was not measured"))


def _dash(why: str) -> Markup:
    return tag("span", "–", title=why, aria_label=f"absent: {why}", role="img", class_="absent")


def _contestant(shown: Results, result: ContestantResult, row: Row) -> Markup:
    place = shown.contestants.index(result.contestant)
    remarks = [tag("span", text, class_="trouble") for text in _remarks(result, row)]
    return tag(
        "span",
        tag("span", class_="dot", style=f"--colour: var(--contestant-{place})"),
        tag("strong", breaking(result.contestant)),
        " ",
        tag("span", row.version or "", class_="version"),
        tag("span", f"best settings: {settings_text(row.found_settings)}", class_="mode")
        if row.division == "best"
        else None,
        remarks,
        class_="who",
    )


def _remarks(result: ContestantResult, row: Row) -> list[str]:
    trouble = [result.trouble_with_code] if result.trouble else []
    warnings = [f"{each.text} [{each.code}]" for each in row.warnings if each.code in codes_of_a_contestant(result)]
    return [*trouble, *warnings, *causes_of_modes(result)]


def _judged(shown: Results, result: ContestantResult, row: Row, longest: float, unit_ns: float | None) -> Markup | str:
    if row.judged is None:
        return _or_dash(row, "judged", None)
    if row.modes:
        modes = (tag("span", text, class_="mode") for text in modes_texts(row, unit_ns))
        return tag("span", tag("span", f"{len(row.modes)} modes: ", class_="modes"), modes, class_="time")
    share = 100 * row.judged.value / longest if longest else 0
    colour = f"--colour: var(--contestant-{shown.contestants.index(result.contestant)})"
    bar = tag("span", class_="bar", style=f"width: {share:.1f}%; {colour}", aria_hidden="true")
    figure, bounds = judged_and_bounds(row, unit_ns)
    return tag(
        "span",
        tag("strong", figure),
        " ",
        tag("span", bounds, class_="bounds"),
        bar,
        class_="time",
    )


def _ratio(row: Row) -> Markup | str:
    if row.ratio is None:
        why = row.absent.get("ratio", "")
        return tag("span", "1×" if row.baseline == row.contestant else "–", title=why, class_="absent")
    ratio, bounds = quantity_text.ratio_and_bounds(row.ratio.value, row.ratio.low, row.ratio.high)
    return tag(
        "span",
        f"{ratio}×",
        " ",
        tag("span", bounds, class_="bounds"),
        tag("span", row.verdict or "", class_=f"verdict {row.verdict}"),
        class_="ratio",
    )
