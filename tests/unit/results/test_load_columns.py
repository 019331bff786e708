"""Columns and verdict of a race of load, from made-up searches."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fairlap.history.between_runs import compare_saved_runs
from fairlap.render.files.markdown_file import encode
from fairlap.render.plan_command import command_of
from fairlap.render.report.answer import answer, headline
from fairlap.render.report.ranked_table import ranked_table
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.load import LoadRequest
from fairlap.results.results import Results
from fairlap.scenarios.load.load_messages import LimitedBy, LoadFound
from fairlap.scenarios.load.loadgen_messages import BY_THE_PATH, WHY_INVALID, LoadGenResult
from fairlap.scenarios.load.render.shown import TOO_SHORT, LoadShown
from fairlap.verdict import TIME_PER_REQUEST, Verdict, sentence
from load_results import LOAD, MS, NOTHING, RATES, TOKENS, found, generated, raced, trial, two


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


def test_the_line_of_a_knee_says_what_it_is() -> None:
    text = text_of(raced(two))
    assert text.count("knee") == text.count("knee, a p99 over twice that of lone requests, at ") == 2


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


def test_other_races_have_no_figure_of_load_and_say_why() -> None:
    row = raced(two, load=None).rows[0]
    assert row.load == ""
    assert row.latency_by_rate == []
    assert row.largest_rate_per_s is None
    assert "fairlap load" in row.absent["largest_rate_per_s"]


def test_tokens_in_a_second_are_the_largest_rate_times_the_tokens_of_a_request() -> None:
    row = generated().rows[0]
    rate, tokens = row.largest_rate_per_s, row.tokens_at_largest_rate_per_s
    assert rate is not None
    assert tokens is not None
    assert (tokens.value, tokens.low, tokens.high) == pytest.approx(
        tuple(TOKENS * each for each in (rate.value, rate.low or 0, rate.high or 0))
    )


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


def test_what_invalid_and_its_reasons_mean_is_said_once_below_every_table() -> None:
    def judged(name: str, block: int) -> LoadFound:
        unmet = ("bound", "early_stopping") if block == 2 else ()
        result = LoadGenResult("server", False, "6.0", not unmet, unmet, 350.0, "1/s", 0.99)  # type: ignore[arg-type]
        return msgspec.structs.replace(two(name, block), loadgen=result)

    shown = raced(judged)
    for text in (text_of(shown), encode(shown.rows).decode(), str(answer(shown, shown.work_results[0]))):
        assert text.count("INVALID: ") == 1
        assert text.count(WHY_INVALID["early_stopping"]) == text.count(WHY_INVALID["bound"]) == 1
        assert WHY_INVALID["clock"] not in text
    assert "INVALID: " not in text_of(raced(two))


@pytest.mark.parametrize(("unmet", "stands"), [(("early_stopping",), 1), (("early_stopping", "first_token"), 0)])
def test_a_run_that_was_only_too_short_is_said_to_leave_the_rate_as_it_is(unmet: tuple[Any, ...], stands: int) -> None:
    def judged(name: str, block: int) -> LoadFound:
        times: dict[str, Any] = {"first_token_s": {"99": 0.05}, "per_token_s": {"99": 0.002}, "tokens_per_s": 200.0}
        result = LoadGenResult("server", False, "6.0", False, unmet, 350.0, "1/s", 0.99, **times)
        return msgspec.structs.replace(two(name, block), loadgen=result)

    found = raced(judged)
    assert text_of(found).count(TOO_SHORT) == stands
    assert text_of(found).count(WHY_INVALID["first_token"]) == 1 - stands
    loadgen = found.rows[0].loadgen
    assert loadgen is not None
    assert "(TTFT p99 50.00 ms, TPOT p99 2.000 ms, 200 tokens/s): early stopping" in loadgen


@pytest.mark.parametrize("in_blocks", [(2, 5), (2,)])
def test_where_it_is_the_way_to_the_contestant_that_misses_the_bound_the_largest_rate_is_said_to_stand(
    in_blocks: tuple[int, ...],
) -> None:
    """Of one run in which it is the contestant, nothing is said of the way to it."""

    def judged(name: str, block: int) -> LoadFound:
        unmet, by_path = ("bound",) if block in (2, 5) else (), block in in_blocks
        result = LoadGenResult("server", False, "6.0", not unmet, unmet, 350.0, "1/s", 0.99, path_misses_bound=by_path)  # type: ignore[arg-type]
        return msgspec.structs.replace(two(name, block), loadgen=result)

    shown = raced(judged)
    by_the_path = [str(row.loadgen).endswith(BY_THE_PATH) for row in shown.rows]
    assert by_the_path == [len(in_blocks) == 2] * 2
    notes = LoadShown().notes(shown.rows)
    assert len(notes) == 2
    assert "at once" in notes[1] if len(in_blocks) == 2 else "at once" not in notes[1]
    assert WHY_INVALID["bound"] in notes[0]


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
