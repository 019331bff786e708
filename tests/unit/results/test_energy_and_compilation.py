"""The columns of energy and of compiling: intervals that hold what sensors leave open, and a reason where absent."""

from __future__ import annotations

import pytest
from fairlap.meters.energy import EnergyOfBlock, EnergyRead, IdlePower
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.scenarios.process_result import ProcessResult
from runs_for_rows import a_run
from runs_with_compilations import with_compilations

ITEMS = 100 * 4  # calls by batch
UNRESOLVED = EnergyRead("board", None, 1.0, 9.0, "the counter made no step")


def read(sensor: str, joules: float) -> EnergyRead:
    return EnergyRead(sensor, joules, 0.9 * joules, 1.2 * joules)


def row_with(*reads_by_process: list[EnergyRead], blocks: int = 1) -> Row:
    run = a_run(blocks, listed="torch,jax")
    processes = [process for process in run.processes if process.contestant == "torch"]
    for process, reads in zip(processes, reads_by_process, strict=True):
        energized(process, reads)
    return next(row for row in results_of(run, "r").rows if row.contestant == "torch")


def energized(process: ProcessResult, reads: list[EnergyRead]) -> None:
    process.energy = EnergyOfBlock(2.0, 100, reads)
    process.idle_power = (IdlePower("board", 30.0, 29.0, 31.0), IdlePower("processor", 10.0, 9.0, 11.0))


def test_sensors_are_added_up_and_idle_power_stands_apart() -> None:
    row = row_with([read("board", 300.0), read("processor", 100.0)])
    energy, idle = row.energy_per_item_j, row.idle_energy_per_item_j
    assert energy is not None
    assert (energy.value, energy.low, energy.high) == pytest.approx((400 / ITEMS, 360 / ITEMS, 480 / ITEMS))
    assert idle is not None
    assert (idle.value, idle.low, idle.high) == pytest.approx((80 / ITEMS, 76 / ITEMS, 84 / ITEMS))
    assert row.mean_power_w is not None
    assert row.mean_power_w.value == pytest.approx(200.0)
    assert row.idle_power_w is not None
    assert row.idle_power_w.value == pytest.approx(40.0)
    assert row.energy_by_sensor_j == pytest.approx({"board": 300 / ITEMS, "processor": 100 / ITEMS})


def test_one_sensor_unresolved_leaves_the_whole_absent_and_its_bounds_in_words() -> None:
    row = row_with([UNRESOLVED, read("processor", 100.0)])
    assert row.energy_per_item_j is None
    words = (
        "unresolved by board: the counter made no step; it is between 0.228 and 0.323 J"  # 91 and 129 J for 400 items
    )
    assert row.absent["energy_per_item_j"] == words
    assert row.absent["mean_power_w"].endswith("between 45.5 and 64.5 W")
    assert row.energy_by_sensor_j == pytest.approx({"processor": 100 / ITEMS})
    assert row.idle_power_w is not None


def test_one_process_unresolved_among_several_is_reported() -> None:
    row = row_with([read("board", 300.0)], [UNRESOLVED], blocks=2)
    assert row.energy_per_item_j is None
    assert row.absent["energy_per_item_j"].startswith("in 1 of 2 processes unresolved: ")
    assert row.energy_by_sensor_j == {}


def test_of_two_sensors_the_one_that_every_process_resolved_has_a_figure() -> None:
    row = row_with([read("board", 300.0), read("memory", 8.0)], [UNRESOLVED, read("memory", 8.0)], blocks=2)
    assert row.energy_per_item_j is None
    assert row.absent["energy_per_item_j"].startswith("in 1 of 2 processes unresolved by board: ")
    assert row.energy_by_sensor_j == pytest.approx({"memory": 8.0 / ITEMS})


def test_a_sensor_that_some_process_did_not_read_has_no_figure() -> None:
    row = row_with([read("board", 300.0), read("memory", 8.0)], [read("board", 300.0)], blocks=2)
    assert row.energy_by_sensor_j == pytest.approx({"board": 300.0 / ITEMS})


@pytest.mark.parametrize("blocks", [1, 2, 7, 8])
def test_the_energy_of_a_single_sensor_is_the_energy(blocks: int) -> None:
    row = row_with(*([read("board", 300.0 * 1.37**number)] for number in range(blocks)), blocks=blocks)
    assert row.energy_per_item_j is not None
    assert row.energy_by_sensor_j == {"board": row.energy_per_item_j.value}


def test_the_interval_spans_all_processes() -> None:
    row = row_with([read("board", 300.0)], [read("board", 400.0)], blocks=2)
    energy = row.energy_per_item_j
    assert energy is not None
    assert (energy.low, energy.high) == pytest.approx((270 / ITEMS, 480 / ITEMS))
    many = row_with(*([read("board", 300.0 + number)] for number in range(8)), blocks=8).energy_per_item_j
    assert many is not None
    assert many.low is not None
    assert many.high is not None
    assert 265 / ITEMS < many.low < 275 / ITEMS
    assert 360 / ITEMS < many.high < 375 / ITEMS


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
