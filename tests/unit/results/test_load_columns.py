"""Columns, verdict and text of a race of load, from made-up searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from fairlap.engine.measurement import Notice
from fairlap.history.between_runs import compare_saved_runs
from fairlap.race.run import Run
from fairlap.render.charts.charts_of_run import charts_of, main_chart_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.libraries import vega_lite_version, vl_convert
from fairlap.render.charts.parts.look import LIGHT
from fairlap.render.charts.parts.static import static_spec
from fairlap.render.files.markdown_file import encode
from fairlap.render.plan_command import command_of
from fairlap.render.report.answer import headline
from fairlap.render.report.page import page_of
from fairlap.render.report.ranked_table import ranked_table
from fairlap.render.text.decision import mean_text
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.load import LoadRequest
from fairlap.request.units import Seconds
from fairlap.results.decision.question import decide, question_of
from fairlap.results.results import Results, results_of
from fairlap.scenarios.load.load_messages import LimitedBy, LoadFound, LoadTimes, LoadTrial, TokenTimes
from fairlap.scenarios.load.loadgen_messages import LoadGenResult
from fairlap.scenarios.process_result import ProcessResult
from fairlap.verdict import TIME_PER_REQUEST, Verdict, sentence
from runs_for_rows import a_process
from runs_of_precisions import planned

MS = 1e6


def trial(kind: str, rate: float | None, p99_ms: float, *, served: float = 0.0) -> LoadTrial:
    times = LoadTimes(0.5 * p99_ms * MS, 0.8 * p99_ms * MS, p99_ms * MS, 1 * MS, 2e4)
    return LoadTrial(kind, rate, 1000, 5, "met", 0, served, 2.0, times, 1.5)  # type: ignore[arg-type]


def found(rate: float) -> LoadFound:
    trials = (
        trial("capacity", None, 300, served=1.2 * rate),
        trial("lone", rate / 4, 4),
        trial("search", rate, 19),
        trial("at_largest_rate", rate, 18),
        trial("curve", 0.25 * rate, 5),
        trial("curve", 0.75 * rate, 9),
    )
    return LoadFound(trials, rate, "bound")


NOTHING = LoadFound((trial("capacity", None, 300, served=50.0),), None, "lone_request")
LOAD = LoadRequest(p99=Seconds("20ms"), workers=2)


def raced(load_of: Callable[[str, int], LoadFound], load: LoadRequest | None = LOAD, **options: Any) -> Results:
    plan = planned(load=load, **options)
    processes: list[ProcessResult] = []
    for block in plan.blocks:
        for place in block.order:
            name = plan.contestants[place].text
            process = a_process(block.number, name, 1e6, plan.works[block.work])
            process.load = load_of(name, block.number) if load else None
            processes.append(process)
    return results_of(Run(plan, processes, {}, {}), "r")


RATES: Mapping[str, float] = {"torch": 400.0, "jax": 500.0}


def two(name: str, block: int) -> LoadFound:
    return found(RATES[name] * (1 + 0.002 * (block % 4) + 0.001 * len(name)))


def test_contestants_are_ranked_by_the_largest_rate_and_not_by_the_time_of_a_call() -> None:
    [work_result] = raced(two).work_results
    [comparison] = work_result.comparisons
    assert comparison.metric == TIME_PER_REQUEST
    assert comparison.verdict is Verdict.SLOWER
    assert comparison.a == "torch"
    assert comparison.ratio == pytest.approx(1.25, rel=0.01)
    assert [each.contestant for each in work_result.contestants] == ["jax", "torch"]
    assert sentence(comparison).claim.startswith("the largest rate of jax is 1.247")
    assert headline(work_result) == "jax has the largest rate"


@pytest.mark.parametrize(("baseline", "whose"), [("", "the first"), ("torch", "torch")])
def test_the_ratio_of_the_table_is_headed_as_one_of_rates(baseline: str, whose: str) -> None:
    shown = replace(raced(two), baseline=baseline)
    table = str(ranked_table(shown, shown.work_results[0]))
    assert f"rate of {whose} over its own" in table
    assert "time per request" not in table


def test_a_row_has_the_rate_its_latencies_and_the_curve() -> None:
    row = next(row for row in raced(two).rows if row.contestant == "torch")
    assert row.load == "p99 within 20 ms, 2 workers"
    assert row.largest_rate_per_s is not None
    assert row.largest_rate_per_s.value == pytest.approx(400, rel=0.01)
    assert row.largest_rate_per_s.low is not None
    assert row.largest_rate_limited_by == "bound"
    assert row.capacity_per_s is not None
    assert row.capacity_per_s.value == pytest.approx(480, rel=0.01)
    assert row.latency_at_largest_rate_p99_ns is not None
    assert row.latency_at_largest_rate_p99_ns.value == pytest.approx(18 * MS)
    assert row.issue_lateness_p99_ns is not None
    assert row.issue_lateness_p99_ns.value == pytest.approx(2e4)
    assert row.mean_batch_at_largest_rate == 1.5
    assert row.first_request_s is not None
    assert row.first_request_s.value == pytest.approx(0.01)
    assert row.latency_by_rate[0].rate_per_s == 0
    assert len(row.latency_by_rate) == 8 * 4


def test_the_knee_is_the_lowest_rate_at_which_p99_is_twice_that_of_lone_requests() -> None:
    row = next(row for row in raced(two).rows if row.contestant == "torch")
    assert row.knee_rate_per_s == pytest.approx(300, rel=0.01)  # 9 ms against 4; 5 ms at a quarter is not twice


def test_a_lone_request_that_was_slow_is_no_knee() -> None:
    def disturbed(name: str, block: int) -> LoadFound:
        whole = two(name, block)
        trials = tuple(trial("lone", 100, 60) if each.kind == "lone" else each for each in whole.trials)
        return msgspec.structs.replace(whole, trials=trials) if block == 3 else whole

    row = next(row for row in raced(disturbed).rows if row.contestant == "torch")
    assert row.knee_rate_per_s == pytest.approx(300, rel=0.01)


def test_a_contestant_without_a_rate_in_some_processes_has_that_of_the_others_and_says_how_many_found_none() -> None:
    shown = raced(lambda name, block: NOTHING if (name, block) in (("torch", 3), ("torch", 5)) else two(name, block))
    [work_result] = shown.work_results
    row, other = (next(row for row in shown.rows if row.contestant == name) for name in ("torch", "jax"))
    assert (row.outcome, row.code) == ("finished", "")
    assert row.place is not None
    assert row.largest_rate_per_s is not None
    assert row.largest_rate_per_s.value == pytest.approx(400, rel=0.01)
    assert row.largest_rate_limited_by == "bound"
    [warning] = [each for each in row.warnings if each.code == "W_NO_RATE"]
    assert "2 of 8" in warning.text
    assert "W_NO_RATE" not in {each.code for each in other.warnings}
    assert work_result.blocks.kept == (0, 1, 2, 4, 6, 7)
    [comparison] = work_result.comparisons
    assert comparison.ratio == pytest.approx(1.25, rel=0.01)
    assert text_of(shown).count("W_NO_RATE") == 1


def test_a_contestant_without_a_rate_in_any_process_is_not_ranked_and_its_row_says_so() -> None:
    shown = raced(lambda name, block: NOTHING if name == "torch" else two(name, block))
    row = next(row for row in shown.rows if row.contestant == "torch")
    assert (row.outcome, row.code, row.place) == ("unqualified", "E_NO_RATE", None)
    assert row.largest_rate_per_s is None
    assert row.absent["largest_rate_per_s"]
    assert row.largest_rate_limited_by == "lone request"
    assert shown.work_results[0].comparisons == ()
    assert "E_NO_RATE" in text_of(shown)


@pytest.mark.parametrize(("limited_by", "is_of_the_budget"), [("budget", True), ("bound", False)])
def test_without_a_rate_the_row_says_whether_the_budget_was_too_short(
    limited_by: LimitedBy, is_of_the_budget: bool
) -> None:
    nothing = LoadFound((trial("capacity", None, 300, served=50.0),), None, limited_by)
    shown = raced(lambda name, block: nothing if name == "torch" else two(name, block))
    row = next(row for row in shown.rows if row.contestant == "torch")
    assert row.code == "E_NO_RATE"
    assert ("budget" in row.message) == is_of_the_budget


def test_processes_without_a_rate_are_left_out_of_a_comparison_of_two_runs() -> None:
    def before(name: str, block: int) -> LoadFound:
        return NOTHING if (name, block) == ("torch", 3) else two(name, block)

    compared = compare_saved_runs(raced(before).run, raced(two).run)
    ratios = [each.medians_ns[1] / each.medians_ns[0] for each in compared.differences]
    assert ratios == pytest.approx([1.0, 1.0], rel=0.01)


def test_where_no_contestant_has_a_rate_there_is_no_verdict() -> None:
    [work_result] = raced(lambda _name, _block: NOTHING).work_results
    assert work_result.why_no_verdict
    assert "max-drop" not in work_result.why_no_verdict


def test_the_terminal_shows_rates() -> None:
    text = text_of(raced(two))
    assert "503/s [" in text
    assert "403/s [" in text
    assert "capacity 484/s" in text


def test_other_races_have_no_figure_of_load_and_say_why() -> None:
    row = raced(two, load=None).rows[0]
    assert row.load == ""
    assert row.latency_by_rate == []
    assert row.largest_rate_per_s is None
    assert "fairlap load" in row.absent["largest_rate_per_s"]


def test_the_page_has_the_chart_of_latency_against_rate_and_the_command() -> None:
    shown = raced(two)
    tables = chart_tables(shown)
    assert {record["percentile"] for record in tables["load"]} == {"p50", "p90", "p99"}
    assert "load" in [chart.key for chart in charts_of(shown, tables)]
    page = page_of(shown)
    assert "fairlap load mlp" in page
    assert "largest rate" in page


TOKENS = 16


def with_tokens(name: str, block: int) -> LoadFound:
    tokens = TokenTimes(2 * MS, 3 * MS, 1 * MS, 1 * MS)
    whole = two(name, block)
    timed = [
        msgspec.structs.replace(each, times=msgspec.structs.replace(each.times, tokens=tokens))
        for each in whole.trials
        if each.times is not None
    ]
    return msgspec.structs.replace(whole, trials=tuple(timed), limited_by="first_token")


def generated() -> Results:
    load = LoadRequest(p99=Seconds("20ms"), first_token=Seconds("4ms"))
    run = raced(with_tokens, load, models=("characters_generate",)).run
    for process in run.processes:
        process.tokens_per_call = TOKENS
    return results_of(run, "r")


def test_the_chart_has_the_first_token_and_both_bounds() -> None:
    shown = generated()
    row = shown.rows[0]
    assert row.largest_rate_limited_by == "first token"
    assert row.latency_by_rate[0].first_token_p99_ns == 3 * MS
    tables = chart_tables(shown)
    assert {record["percentile"] for record in tables["load"]} == {"p50", "p90", "p99", "first token p99"}
    bounds = {record["bound"]: record["ns"] for record in tables["load_bounds"]}
    assert bounds == {"p99 within 20 ms": 20 * MS, "first token p99 within 4 ms": pytest.approx(4 * MS)}
    assert "load" in [chart.key for chart in charts_of(shown, tables)]


def test_lines_of_the_chart_join_trials_of_one_process_and_its_key_shows_their_strokes() -> None:
    shown = raced(two)
    tables = chart_tables(shown)
    [chart] = [each for each in charts_of(shown, tables) if each.key == "load"]
    spec = static_spec(chart, shown, shown.work_results[0], tables)
    assert spec is not None
    drawn = vl_convert().vegalite_to_vega(spec, vl_version=vega_lite_version())
    [lines] = [each["from"]["facet"] for each in drawn["marks"] if "facet" in each["from"]]
    assert set(lines["groupby"]) == {"contestant", "block", "percentile"}
    assert {record["block"] for record in tables["load"]} == set(range(8))
    [key] = [each for each in drawn["legends"] if "strokeDash" in each]
    assert key["symbolStrokeColor"] == LIGHT.ink
    assert "encode" not in key  # which would make the strokes transparent


def test_a_picture_of_a_race_under_load_shows_what_contestants_are_ranked_by() -> None:
    shown = raced(two)
    assert main_chart_of(charts_of(shown, chart_tables(shown))).key == "load"
    other = raced(two, load=None)
    assert main_chart_of(charts_of(other, chart_tables(other))).key == "intervals"


def test_tokens_in_a_second_are_the_largest_rate_times_the_tokens_of_a_request() -> None:
    row = generated().rows[0]
    rate, tokens = row.largest_rate_per_s, row.tokens_at_largest_rate_per_s
    assert rate is not None
    assert tokens is not None
    assert (tokens.value, tokens.low, tokens.high) == pytest.approx(
        tuple(TOKENS * each for each in (rate.value, rate.low or 0, rate.high or 0))
    )


def test_the_ranked_table_has_the_first_token_at_the_largest_rate() -> None:
    shown = generated()
    table = ranked_table(shown, shown.work_results[0])
    assert "first token p99" in table
    assert "3.000 ms" in table
    plain = raced(two)
    assert "first token" not in ranked_table(plain, plain.work_results[0])


def at_capacity(name: str, block: int) -> LoadFound:
    return msgspec.structs.replace(two(name, block), limited_by="capacity" if block % 4 == 1 else "bound")


def test_the_column_and_the_warning_agree_on_the_processes_that_the_capacity_limited() -> None:
    row = raced(at_capacity).rows[0]
    assert row.largest_rate_limited_by == "bound in 6 of 8 processes, capacity in 2"
    [warning] = [each for each in row.warnings if each.code == "W_BOUND_DOES_NOT_LIMIT"]
    assert "2 of 8" in warning.text
    assert "W_BOUND_DOES_NOT_LIMIT" not in {each.code for each in raced(two).rows[0].warnings}


def scattered_twice(factor: float, load: LoadRequest | None = LOAD) -> Results:
    return raced(lambda name, block: found(RATES[name] * (factor if name == "jax" and block else 1)), load, blocks=2)


def test_two_processes_whose_rates_are_far_apart_are_a_warning_with_both_rates() -> None:
    shown = scattered_twice(2.8)
    rows = {row.contestant: row for row in shown.rows}
    [warning] = [each for each in rows["jax"].warnings if each.code == "W_SCATTERED_PROCESSES"]
    assert "500/s" in warning.text
    assert "1,400/s" in warning.text
    assert "2.8" in warning.text
    assert "W_SCATTERED_PROCESSES" not in {each.code for each in rows["torch"].warnings}
    assert text_of(shown).count("W_SCATTERED_PROCESSES") == 1
    assert "W_SCATTERED_PROCESSES" in ranked_table(shown, shown.work_results[0])


def test_processes_within_a_factor_of_two_or_with_an_interval_are_no_warning() -> None:
    near = scattered_twice(1.9)
    wide = raced(lambda name, block: found(RATES[name] * (3 if block % 2 else 1) * (1 + 0.2 * block)))
    assert all(row.largest_rate_per_s is not None and row.largest_rate_per_s.low is not None for row in wide.rows)
    codes = {each.code for shown in (near, wide) for row in shown.rows for each in row.warnings}
    assert "W_SCATTERED_PROCESSES" not in codes


def test_the_command_of_a_plan_draws_it_again() -> None:
    command = command_of(raced(two).run.plan)
    assert "--p99 0.02s" in command
    assert "--workers 2" in command
    assert "--mode" not in command


def test_two_runs_of_load_are_compared_by_their_largest_rates() -> None:
    before, after = raced(two).run, raced(lambda name, block: found(0.5 * RATES[name] * (1 + 0.001 * block))).run
    compared = compare_saved_runs(before, after)
    ratios = [each.medians_ns[1] / each.medians_ns[0] for each in compared.differences]
    assert ratios == pytest.approx([2.0, 2.0], rel=0.02)


def test_what_loadgen_says_is_on_the_row() -> None:
    def judged(name: str, block: int) -> LoadFound:
        valid = (name, block) != ("jax", 2)
        result = LoadGenResult("server", False, "6.0", valid, () if valid else ("bound",), 350.0, "1/s", 0.99)
        return msgspec.structs.replace(two(name, block), loadgen=result)

    rows = {row.contestant: row for row in raced(judged).rows}
    assert rows["torch"].loadgen == "VALID in server"
    assert rows["jax"].loadgen == "INVALID in server in 1 of 8 processes: bound"
    assert rows["torch"].loadgen_rate_per_s is not None
    assert rows["torch"].loadgen_latency_ns is None


def test_a_run_that_loadgen_calls_invalid_is_not_ranked_in_its_scenario() -> None:
    def judged(name: str, block: int) -> LoadFound:
        valid = name != "jax"
        figure = 0.002 * (1 + 0.001 * block)
        result = LoadGenResult("single-stream", False, "6.0", valid, () if valid else ("queries",), figure, "s", 0.9)
        return LoadFound(loadgen=result)

    shown = raced(judged, LoadRequest(scenario="single-stream"))
    rows = {row.contestant: row for row in shown.rows}
    assert (rows["jax"].outcome, rows["jax"].code) == ("unqualified", "E_LOADGEN_INVALID")
    assert rows["torch"].outcome == "finished"
    assert rows["torch"].loadgen_latency_ns is not None
    assert rows["torch"].loadgen_latency_ns.value == pytest.approx(2 * MS, rel=0.01)
    assert rows["torch"].load == "LoadGen single-stream"
    assert "--scenario single-stream" in command_of(shown.run.plan)


def test_a_warning_of_every_process_is_shown_once() -> None:
    shown = raced(two)
    for process in shown.run.processes:
        process.warnings = [Notice("W_LATE_REQUESTS", f"{process.block} ms late")]
    text = text_of(results_of(shown.run, "r"))
    assert text.count("W_LATE_REQUESTS") == 2  # contestants


def test_markdown_has_the_rate_and_its_latencies_before_the_time_of_a_call() -> None:
    lines = encode(raced(two).rows).decode().splitlines()
    heads = next(line for line in lines if line.startswith("| #")).strip("| ").split(" | ")
    fast = next(line for line in lines if line.startswith("| 1 |")).strip("| ").split(" | ")
    cells = dict(zip(heads, fast, strict=True))
    assert heads.index("largest rate") < heads.index("time of a call")
    assert cells["largest rate"].startswith("50")
    assert cells["p99 at this rate"].startswith("18")
    assert cells["limited by"] == "bound"
    assert any("`p99 within 20 ms, 2 workers`" in line for line in lines if line.startswith("**"))
    assert any(line.startswith("- **slower**") and "as long per request as" in line for line in lines)


def test_markdown_of_a_race_in_which_a_contestant_found_no_rate_counts_and_explains_it() -> None:
    lines = encode(raced(lambda name, block: NOTHING if name == "torch" else two(name, block)).rows).decode()
    assert lines.startswith("### fairlap: 1 unqualified")
    assert "- **unqualified**: `torch`" in lines


def test_the_mean_over_works_says_that_it_is_of_rates() -> None:
    found = raced(two, models=("mlp", "convnet"))
    question = question_of("memory<1TB", "")
    assert question is not None
    [mean] = decide(found, question).means
    [*_, row] = found.rows
    assert (mean.baseline, mean.inverse) == (found.rows[0].contestant, "largest rate")
    assert row.ratio is not None
    assert mean.ratio == pytest.approx(row.ratio.value, rel=0.01)
    assert mean_text(mean).split(": ")[1].startswith(f"the largest rate of {mean.baseline} is")
