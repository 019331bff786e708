"""From laps to rows, modes, verdicts, and the sentence that the order depends on the conditions."""

from __future__ import annotations

import random

import pytest
from fairlap.ledger.judged_time import judged_time_ns
from fairlap.ledger.rows_of_run import rows_of_run
from fairlap.race.laps import AnswerError, Figure, Lap, Outcome
from fairlap.race.naming import contestants_named
from fairlap.race.plan import Conditions, Plan, Work, draw_plan
from fairlap.race.results import Results, results_of
from fairlap.race.saving import SavedRun
from fairlap.race.telling import text_of

WORK = Work("mlp", 1)


def plan(blocks: int = 12) -> Plan:
    return draw_plan(
        contestants_named("torch,jax"),
        (WORK,),
        blocks=blocks,
        conditions="controlled",
        threads=1,
        available_cores=(0, 1),
        seed=3,
    )


def lap(block: int, contestant: str, ns: float, conditions: Conditions = "controlled", faults: float = 0.0) -> Lap:
    figure = Figure(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)
    return Lap(
        block=block,
        position=0,
        contestant=contestant,
        work=WORK.label,
        conditions=conditions,
        figures={"wall_ns": figure},
        per_call={"page_faults": faults, "migrations": 0.0},
        cores=(0,),
        errors=[AnswerError("logits", "before", 1.0, 1e-6, 1e-7, True)],
    )


def noisy(ns: float, seed: int) -> float:
    return ns * (1 + random.Random(seed).uniform(-0.005, 0.005))


def race(torch_ns: float, jax_ns: float, blocks: int = 12) -> list[Lap]:
    return [
        one
        for block in range(blocks)
        for one in (lap(block, "torch", noisy(torch_ns, block)), lap(block, "jax", noisy(jax_ns, 99 + block)))
    ]


def spoiled(one: Lap, outcome: Outcome, message: str) -> Lap:
    one.outcome, one.message, one.figures = outcome, message, {}
    return one


def results(laps: list[Lap], blocks: int = 12) -> Results:
    return results_of(plan(blocks), laps)


def test_the_faster_one_stands_first_and_the_verdict_says_so() -> None:
    heat = results(race(2e6, 1e6)).heats[0]
    assert [row.contestant for row in heat.rows] == ["jax", "torch"]
    assert heat.standing is not None
    assert heat.standing.winner == "jax"
    text = text_of(plan(), results(race(2e6, 1e6)))
    assert "jax is 2.0" in text
    assert "times as fast as torch" in text


def test_a_disqualified_contestant_is_shown_but_not_ranked() -> None:
    laps = race(2e6, 1e6)
    spoiled(laps[1], "disqualified", "logits differs")
    heat = results(laps).heats[0]
    assert [(row.contestant, row.ranked) for row in heat.rows] == [("torch", True), ("jax", False)]
    assert heat.standing is None
    assert "1 contestant can be ranked" in heat.why_no_verdict
    assert "disqualified in 1 of 12 processes: logits differs" in text_of(plan(), results(laps))


def test_a_block_with_a_crash_is_left_out_for_everyone_and_the_crash_is_told() -> None:
    laps = race(2e6, 1e6)
    spoiled(laps[0], "crash", "killed by SIGSEGV")
    heat = results(laps).heats[0]
    assert heat.table is not None
    assert heat.table.blocks == 11
    assert "crash in 1 of 12 processes: killed by SIGSEGV" in text_of(plan(), results(laps))


def test_a_contestant_that_never_finished_is_a_row_with_its_reason() -> None:
    laps = [one if one.contestant == "jax" else spoiled(one, "not_installed", "no torch") for one in race(2e6, 1e6)]
    text = text_of(plan(), results(laps))
    assert "torch  not installed: no torch" in text
    assert "no verdict: 1 contestant can be ranked" in text


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_too_few_blocks_never_claim_a_difference(blocks: int) -> None:
    text = text_of(plan(blocks), results(race(2e6, 1e6, blocks), blocks))
    assert "times as fast as" not in text.replace("jax is 2.0", "") or "inconclusive" in text


def test_two_modes_are_told_with_their_shares_and_the_page_faults_that_go_with_them() -> None:
    laps = race(2e6, 1e6)
    for one in laps:
        if one.contestant == "torch" and one.block % 3:
            faster = replace_figure(one, 1.1e6 * (1 + one.block / 1e4))
            one.figures, one.per_call = faster.figures, {"page_faults": 0.0, "migrations": 0.0}
        elif one.contestant == "torch":
            one.per_call = {"page_faults": 1410.0, "migrations": 0.0}
    text = text_of(plan(), results(laps))
    assert "two modes:" in text
    assert "33% of processes" in text
    assert "its modes go with page faults per call (0, 1410); the C library gives memory back" in text


def replace_figure(one: Lap, ns: float) -> Lap:
    [figure] = one.figures.values()
    one.figures = {"wall_ns": Figure(ns, ns, ns, figure.samples, 1, 0, "flat", "tsc", 10.0)}
    return one


def test_one_figure_is_told_everywhere_and_it_is_never_between_two_modes() -> None:
    laps = race(2e6, 1e6)
    for one in laps:
        if one.contestant == "jax" and one.block % 2:
            replace_figure(one, 3e6 * (1 + one.block / 1e4))
    run = SavedRun(plan(), laps, {}, {}, "2026-01-01T00:00:00+00:00")
    told = {row.contestant: judged_time_ns(row) for row in rows_of_run(run, "r")}
    shown = {row.contestant: row.median_ns for row in results(laps).heats[0].rows}
    assert shown == {name: figure and figure.value for name, figure in told.items()}
    assert shown["jax"] == max(one.headline_ns for one in laps if one.contestant == "jax" and not one.block % 2)


def test_when_the_conditions_change_the_order_the_answer_says_so_first() -> None:
    laps = race(1e6, 1.2e6)
    laps += [lap(100 + block, "torch", noisy(2.5e6, block), "as-found", faults=1410) for block in range(6)]
    laps += [lap(100 + block, "jax", noisy(1.2e6, block), "as-found") for block in range(6)]
    assert text_of(plan(), results(laps)).splitlines()[:3] == [
        "The order depends on the conditions; the causes stand below.",
        "  as found:   jax < torch",
        "  controlled: torch < jax",
    ]


def test_conditions_that_do_not_change_the_order_are_not_talked_about() -> None:
    laps = race(1e6, 1.2e6) + [
        lap(100 + n, name, ns, "as-found") for n in range(6) for name, ns in (("torch", 1e6 + n), ("jax", 2e6 + n))
    ]
    assert "The order depends" not in text_of(plan(), results(laps))


def test_the_times_of_the_first_are_those_of_the_verdict() -> None:
    laps = race(1e6, 1.5e6)
    results = results_of(plan(), laps)
    [comparison] = results.heats[0].comparisons
    slower = comparison if comparison.a == "jax" else comparison.reversed()
    assert f"  {slower.ratio:.2f}x" in text_of(plan(), results)
    laps[1].figures["wall_ns"] = Figure(9e6, 9e6, 9e6, 100, 1, 0, "flat", "tsc", 10.0)
    laps[3].figures["wall_ns"] = Figure(9e6, 9e6, 9e6, 100, 1, 0, "flat", "tsc", 10.0)
    results = results_of(plan(), laps)
    [comparison] = results.heats[0].comparisons
    slower = comparison if comparison.a == "jax" else comparison.reversed()
    assert f"  {slower.ratio:.2f}x" in text_of(plan(), results)


def test_blocks_of_a_single_contestant_are_complete() -> None:
    alone = [one for one in race(1e6, 1e6, blocks=7) if one.contestant == "torch"]
    [heat] = results_of(plan(), alone).heats
    assert len(heat.blocks.kept) == 7
    assert "7 complete blocks" in text_of(plan(), results_of(plan(), alone))
