"""Many works are one table: a line for each, the fastest, and every kind of warning once."""

from __future__ import annotations

import random
from functools import cache

import pytest
from fairlap import quantity_text
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.render.text.terminal import text_of
from fairlap.render.text.works_table import MOST_IN_FULL
from fairlap.results.results import Results, results_of
from fairlap.scenarios.process_result import Timing
from fairlap.verdict import needed_text
from runs_to_show import PLAIN, WRONG, run_of

BATCHES = tuple(range(1, 21))


@cache
def results(batches: tuple[int, ...] = BATCHES) -> Results:
    return results_of(run_of(PLAIN, batches=batches, blocks=14), "r")


def test_twenty_works_are_a_line_each() -> None:
    lines = text_of(results()).splitlines()
    assert len(lines) < len(BATCHES) + len(PLAIN) + 10
    for batch in BATCHES:
        [line] = [each for each in lines if each.split()[:2] == ["batch", str(batch)]]
        assert line.split()[-1] == "torch"  # the fastest
        assert "2.00" in line  # times the fastest


def test_what_all_works_share_is_in_the_head_alone() -> None:
    head, *lines = text_of(results()).splitlines()
    assert "mlp · infer · fp32" in head
    assert not any("mlp" in each for each in lines)


def test_times_of_all_works_have_one_unit_where_one_suits_them() -> None:
    lines = text_of(results((1, 2, 3, 4))).splitlines()
    units = {line.split()[3] for line in lines if line.startswith("  batch")}
    assert units == {"ms"}


def test_a_warning_of_every_work_is_printed_once() -> None:
    text = text_of(results())
    assert text.count("[W_torch]") == 1
    assert text.count(f"{WRONG}: disqualified") == 1


def test_what_deciding_the_undecided_works_takes_is_said_once_below_the_table() -> None:
    run, noise = run_of(PLAIN, batches=(1, 2, 3, 4, 5), blocks=14), random.Random(3)
    undecided = {work.id for work in run.plan.works if work.batch in (2, 4)}
    for process in run.processes:
        process.elapsed_s = 1.0
        if process.work_id in undecided:
            ns = 1e6 * noise.lognormvariate(0, 0.1)
            process.timings = {"wall_ns": Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)}
    found = results_of(run, "r")
    needed = max(row.needed_blocks for row in found.rows if row.needed_blocks is not None)
    [line] = [line for line in text_of(found).splitlines() if "Deciding it takes" in line]
    seconds = float(f"{needed * 3 * 5:.2g}")  # three processes in a block of each of five works
    assert line.startswith(f"  Deciding it takes {needed_text(needed)} each, {quantity_text.seconds(seconds)} (")
    assert "Deciding it takes" not in text_of(results())


@pytest.mark.slow
def test_few_works_and_a_full_answer_are_shown_one_by_one() -> None:
    few = text_of(results(BATCHES[:MOST_IN_FULL]))
    assert few == text_of(results(BATCHES[:MOST_IN_FULL]), in_full=True)
    assert len(text_of(results(), in_full=True).splitlines()) > 2 * len(BATCHES)


@pytest.mark.slow
def test_what_the_table_leaves_out_is_named_with_the_command_that_prints_it() -> None:
    shown = results_of(run_of(PLAIN, batches=BATCHES, blocks=14), "r")
    assert "fairlap show" not in text_of(shown)
    shown.run.profiles.append(
        ProfileResult(0, PLAIN[0], shown.works()[0].id, "failed", "E_PROFILE", "it has no profiler")
    )
    assert "`fairlap show RUN`" in text_of(shown)
    assert "`fairlap show RUN`" not in text_of(shown, in_full=True)


@pytest.mark.slow
def test_what_went_wrong_is_pointed_to_once_with_the_command_that_explains_it() -> None:
    run = run_of(PLAIN, batches=BATCHES, blocks=14)
    for process in run.processes:
        process.code = "E_OUTPUT" if process.outcome == "disqualified" else ""
    for text in (text_of(results_of(run, "r")), text_of(results_of(run, "r"), in_full=True)):
        assert text.splitlines()[-1] == "What to do: `fairlap explain E_OUTPUT`."
