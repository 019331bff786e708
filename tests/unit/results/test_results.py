"""From processes to rows, modes, verdicts, and the sentence that the order depends on the conditions."""

from __future__ import annotations

import random
import re

import pytest
from fairlap.race.planning.plan import Plan
from fairlap.race.run import Run
from fairlap.render.text.terminal import text_of
from fairlap.request.work import Conditions, Work
from fairlap.results.results import Results, results_of
from fairlap.results.row import judged_time_ns
from fairlap.scenarios.process_result import AnswerError, Outcome, ProcessResult, Timing
from runs_for_rows import a_run
from small_races import small_plan

WORK = Work("mlp", 1)


def plan(blocks: int = 12) -> Plan:
    return small_plan("torch,jax", WORK, blocks=blocks, conditions="controlled", available_cores=(0, 1), seed=3)


def process(
    block: int, contestant: str, ns: float, conditions: Conditions = "controlled", faults: float = 0.0
) -> ProcessResult:
    figure = Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)
    return ProcessResult(
        block=block,
        position=0,
        contestant=contestant,
        work_id=WORK.id,
        conditions=conditions,
        timings={"wall_ns": figure},
        per_call={"page_faults": faults, "migrations": 0.0},
        cores=(0,),
        errors=[AnswerError("logits", "before", 1.0, 1e-6, 1e-7, True)],
    )


def noisy(ns: float, seed: int) -> float:
    return ns * (1 + random.Random(seed).uniform(-0.005, 0.005))


def race(torch_ns: float, jax_ns: float, blocks: int = 12) -> list[ProcessResult]:
    return [
        one
        for block in range(blocks)
        for one in (process(block, "torch", noisy(torch_ns, block)), process(block, "jax", noisy(jax_ns, 99 + block)))
    ]


def spoiled(one: ProcessResult, outcome: Outcome, code: str) -> ProcessResult:
    one.outcome, one.code, one.message, one.timings = outcome, code, "a message", {}
    return one


def results(processes: list[ProcessResult], blocks: int = 12) -> Results:
    return results_of(Run(plan(blocks), list(processes), {}, {}))


def test_the_faster_one_stands_first_and_the_verdict_says_so() -> None:
    work_result = results(race(2e6, 1e6)).work_results[0]
    assert [row.contestant for row in work_result.rows] == ["jax", "torch"]
    assert work_result.standing is not None
    assert work_result.standing.winner == "jax"
    text = text_of(results(race(2e6, 1e6)))
    assert [line.split()[:2] for line in text.splitlines()[1:3]] == [["1", "jax"], ["2", "torch"]]
    assert "fastest" in text


def test_a_disqualified_contestant_is_shown_but_not_ranked() -> None:
    processes = race(2e6, 1e6)
    spoiled(processes[1], "disqualified", "E_OUTPUT")
    work_result = results(processes).work_results[0]
    assert [(each.contestant, each.ranked) for each in work_result.contestants] == [("torch", True), ("jax", False)]
    assert work_result.standing is None
    assert work_result.why_no_verdict
    assert [row.code for row in work_result.rows] == ["", "E_OUTPUT"]
    assert re.search(r" 1 of 12 .*\[E_OUTPUT\]", text_of(results(processes)))


def test_a_block_with_a_crash_is_left_out_for_everyone_and_the_crash_is_reported() -> None:
    processes = race(2e6, 1e6)
    spoiled(processes[0], "crash", "E_CRASH")
    work_result = results(processes).work_results[0]
    assert work_result.table is not None
    assert work_result.table.blocks == 11
    assert re.search(r"! .* 1 of 12 .*\[E_CRASH\]", text_of(results(processes)))


def test_a_contestant_that_never_finished_is_a_row_with_its_reason() -> None:
    processes = [
        one if one.contestant == "jax" else spoiled(one, "not_installed", "E_NOT_INSTALLED") for one in race(2e6, 1e6)
    ]
    text = text_of(results(processes))
    assert re.search(r"torch .*\[E_NOT_INSTALLED\]", text)


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_too_few_blocks_never_claim_a_difference(blocks: int) -> None:
    text = text_of(results(race(2e6, 1e6, blocks), blocks))
    assert "fastest" not in text
    assert "slower" not in text


def test_two_modes_are_reported_with_their_shares_and_the_page_faults_that_go_with_them() -> None:
    processes = race(2e6, 1e6)
    for one in processes:
        if one.contestant == "torch" and one.block % 3:
            faster = replace_figure(one, 1.1e6 * (1 + one.block / 1e4))
            one.timings, one.per_call = faster.timings, {"page_faults": 0.0, "migrations": 0.0}
        elif one.contestant == "torch":
            one.per_call = {"page_faults": 1410.0, "migrations": 0.0}
    text = text_of(results(processes))
    assert "2 modes: 1.1" in text
    assert "in 33 %" in text
    assert "page faults per call (0, 1410); " in text


def replace_figure(one: ProcessResult, ns: float) -> ProcessResult:
    [figure] = one.timings.values()
    one.timings = {"wall_ns": Timing(ns, ns, ns, figure.samples, 1, 0, "flat", "tsc", 10.0)}
    return one


def test_one_figure_is_reported_everywhere_and_it_is_never_between_two_modes() -> None:
    processes = race(2e6, 1e6)
    for one in processes:
        if one.contestant == "jax" and one.block % 2:
            replace_figure(one, 3e6 * (1 + one.block / 1e4))
    run = Run(plan(), processes, {}, {}, "2026-01-01T00:00:00+00:00")
    judged = {row.contestant: judged_time_ns(row) for row in results_of(run, "r").rows}
    shown = {row.contestant: row.median_ns for row in results(processes).work_results[0].contestants}
    assert shown == {name: figure and figure.value for name, figure in judged.items()}
    assert shown["jax"] == max(one.headline_ns for one in processes if one.contestant == "jax" and not one.block % 2)


def test_when_the_conditions_change_the_order_the_answer_says_so_first() -> None:
    processes = race(1e6, 1.2e6)
    processes += [process(100 + block, "torch", noisy(2.5e6, block), "as-found", faults=1410) for block in range(6)]
    processes += [process(100 + block, "jax", noisy(1.2e6, block), "as-found") for block in range(6)]
    found = results(processes)
    assert found.order_differs(found.works()[0]) == (("jax", "torch"), ("torch", "jax"))
    lines = text_of(found).splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["as", "found:", "jax", "<", "torch"],
        ["controlled:", "torch", "<", "jax"],
    ]


def test_conditions_that_do_not_change_the_order_are_not_talked_about() -> None:
    processes = race(1e6, 1.2e6) + [
        process(100 + n, name, ns, "as-found") for n in range(6) for name, ns in (("torch", 1e6 + n), ("jax", 2e6 + n))
    ]
    assert results(processes).order_differs(results(processes).works()[0]) is None


def test_the_times_of_the_first_are_those_of_the_verdict() -> None:
    processes = race(1e6, 1.5e6)
    results = results_of(Run(plan(), list(processes), {}, {}))
    [comparison] = results.work_results[0].comparisons
    slower = comparison if comparison.a == "jax" else comparison.reversed()
    assert f"  {slower.ratio:.2f}" in text_of(results)
    processes[1].timings["wall_ns"] = Timing(9e6, 9e6, 9e6, 100, 1, 0, "flat", "tsc", 10.0)
    processes[3].timings["wall_ns"] = Timing(9e6, 9e6, 9e6, 100, 1, 0, "flat", "tsc", 10.0)
    results = results_of(Run(plan(), list(processes), {}, {}))
    [comparison] = results.work_results[0].comparisons
    slower = comparison if comparison.a == "jax" else comparison.reversed()
    assert f"  {slower.ratio:.2f}" in text_of(results)


def test_blocks_of_a_single_contestant_are_complete() -> None:
    alone = [one for one in race(1e6, 1e6, blocks=7) if one.contestant == "torch"]
    [work_result] = results_of(Run(plan(), list(alone), {}, {})).work_results
    assert len(work_result.blocks.kept) == 7
    assert "7 complete blocks" in text_of(results_of(Run(plan(), list(alone), {}, {})))


def test_in_an_interactive_session_results_are_a_line_for_each_row_and_its_verdict() -> None:
    shown = repr(results_of(a_run(), "r"))
    head, first, second = shown.splitlines()
    assert head == "mlp · infer · fp32 · batch 4 · controlled: 8 complete blocks"
    assert first == "  1   jax:fast  998.9 µs [995.4, 1,002.7]  fastest"
    assert second == "  2   torch     2.003 ms [1.999, 2.008]  slower, 2.005 [1.998, 2.012] times jax:fast"


def test_a_contestant_without_a_place_is_shown_with_what_became_of_it() -> None:
    run = a_run()
    for process in run.processes:
        if process.contestant == "torch":
            process.outcome, process.code, process.message = "crash", "E_CRASH", "signal 11 ended it"
    last = repr(results_of(run, "r")).splitlines()[-1]
    assert last.startswith("  -   torch")
    assert last.endswith("[E_CRASH]")


def test_the_terminal_claims_no_ratio_where_the_rows_have_none() -> None:
    for blocks in (1, 8):
        found = results_of(a_run(blocks=blocks), "r")
        claimed = [row.ratio is not None for row in found.rows if row.contestant == "torch"]
        assert claimed == [blocks > 1]
        assert bool(re.search(r"\b2[.\d]*×", text_of(found))) is (blocks > 1)


def test_a_claim_of_a_run_that_was_continued_after_it_had_ended_without_it_says_so() -> None:
    def codes(continued_after: int, blocks: int = 12) -> set[str]:
        processes = race(2e6, 1e6, blocks)
        run = Run(plan(blocks), processes, {}, {}, ended_early=f"x; continued after block {continued_after}")
        return {warning.code for row in results_of(run).rows for warning in row.warnings}

    assert "W_CONTINUED" in codes(4)  # a fixed number of blocks is judged at its end
    assert "W_CONTINUED" not in codes(12)
    assert "W_CONTINUED" not in codes(3, blocks=5)  # too few to claim anything
