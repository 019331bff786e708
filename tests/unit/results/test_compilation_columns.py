"""A row has what compiling did, or the reason why that is absent."""

from __future__ import annotations

from fairlap.results.results import results_of
from fairlap.results.row import Row
from runs_for_rows import a_run
from runs_with_compilations import with_compilations

COUNTS = ("graphs", "graph_breaks", "operators_before", "kernels_after", "operators_counted")


def rows() -> dict[str, Row]:
    run = with_compilations(a_run(listed="torch,jax:fast,onnxruntime"))
    return {row.contestant: row for row in results_of(run, "r").rows}


def test_a_row_has_counts_and_the_stall_at_each_batch_or_the_reason() -> None:
    row = rows()["torch"]
    assert tuple(getattr(row, name) for name in COUNTS) == (2, 1, 6, 5, "operators, and kernels")
    assert row.recompile_stall_s == {"7": 0.5}
    assert row.recompile_absent == {"8": "it failed at batch 8"}
    assert not set(COUNTS) & set(row.absent)


def test_one_that_was_lost_while_it_was_asked_has_its_code_as_the_reason() -> None:
    row = rows()["jax:fast"]
    assert {row.absent[name] for name in COUNTS} == {"it crashed in resize [E_CRASH]"}
    assert row.recompile_absent == dict.fromkeys(("7", "8"), "it crashed in resize [E_CRASH]")


def test_one_that_was_not_reached_says_that_a_resumed_race_asks_it() -> None:
    row = rows()["onnxruntime"]
    assert {name for name in COUNTS if "--resume" in row.absent[name]} == set(COUNTS)
    assert set(row.recompile_absent) == {"7", "8"}


def test_what_compiling_did_is_in_rows_of_the_verdicts_conditions_alone() -> None:
    run = with_compilations(a_run())
    for process in run.processes[::2]:
        process.conditions = "as-found"
    beside = [row for row in results_of(run, "r").rows if row.conditions != run.plan.headline]
    assert beside
    assert all(row.graphs is None and not row.recompile_stall_s and not row.recompile_absent for row in beside)


def test_building_again_is_part_of_a_stall_and_a_quicker_first_call_is_none() -> None:
    from fairlap.scenarios.untimed.compilation_messages import Resized

    assert Resized(first_s=0.3, call_s=0.1, built_s=2.0).stall_s == 2.2
    assert Resized(first_s=0.1, call_s=0.3).stall_s == 0.0
    assert Resized(why="none").stall_s is None
