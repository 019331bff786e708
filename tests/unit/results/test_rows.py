"""A row holds what a run showed of one contestant; what is absent says why; columns are read off its definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.meters.device_slowdown import DeviceState
from fairlap.meters.energy import EnergyOfBlock, EnergyRead
from fairlap.meters.memory import Memory
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.flat_row import columns, flat
from fairlap.results.prices import Price, price_given
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.scenarios.process_result import AnswerError, SmallestMemory
from fairlap.store.runs.run_file import load_run, save_run
from runs_for_rows import a_run, crashed


def by_name(rows: Sequence[Row]) -> dict[str, Row]:
    return {row.contestant: row for row in rows}


def test_a_row_holds_what_the_run_showed() -> None:
    rows = results_of(a_run(), "r1").rows
    assert [row.contestant for row in rows] == ["jax:fast", "torch"]
    slow = by_name(rows)["torch"]
    assert (slow.run, slow.workload, slow.batch, slow.framework, slow.version) == ("r1", "mlp", 4, "torch", "1.2.3")
    assert slow.latency_p50_ns is not None
    assert slow.latency_p50_ns.value == pytest.approx(2e6, rel=0.01)
    assert slow.latency_p50_ns.low is not None
    assert slow.latency_p50_ns.low < slow.latency_p50_ns.value
    assert slow.throughput_per_s is not None
    assert slow.throughput_per_s.value == pytest.approx(4 / 2e-3, rel=0.01)
    assert slow.compile_warm_s == Estimate(2.0, 2.0, 2.0)
    assert slow.time_to_first_inference_s is not None
    assert slow.time_to_first_inference_s.value == pytest.approx(3.61)
    assert slow.peak_memory_bytes is not None
    assert slow.memory_bytes == {"anonymous": 700_000, "peak": 1_000_000}
    assert slow.error_relative == 1e-7
    assert [warning.code for warning in slow.warnings] == ["W_COARSE_CLOCK"]
    assert (slow.processes, slow.processes_finished, slow.blocks_kept) == (8, 8, 8)


def test_the_others_are_held_against_the_fastest_or_the_baseline_that_was_named() -> None:
    slow = by_name(results_of(a_run(), "r").rows)["torch"]
    assert (slow.baseline, slow.verdict) == ("jax:fast", "slower")
    assert slow.ratio is not None
    assert slow.ratio.value == pytest.approx(2.0, rel=0.01)
    fast = by_name(results_of(a_run(), "r", baseline="torch").rows)["jax:fast"]
    assert (fast.baseline, fast.verdict) == ("torch", "faster")
    assert fast.ratio is not None
    assert fast.ratio.value == pytest.approx(0.5, rel=0.01)


def test_the_clock_of_the_gpu_while_it_was_measured_is_beside_those_around() -> None:
    run = a_run()
    own = [process for process in run.processes if process.contestant == "torch"]
    unread = EnergyRead("nvml:0", None, None, None, "the sensor reported no energy")
    for number, process in enumerate(own):
        process.energy = EnergyOfBlock(1.0, 10, [unread], device_sm_mhz=1500.0 + number)
    middle = 1500.0 + (len(own) - 1) / 2
    assert by_name(results_of(run, "r").rows)["torch"].gpu_sm_mhz == {"measured": middle}


def test_the_state_of_the_gpu_around_processes_is_the_median_of_those_that_report_it() -> None:
    run = a_run()
    own = [process for process in run.processes if process.contestant == "torch"]
    for number, process in enumerate(own[:3]):
        process.device_states = [DeviceState(345, 40, 71.5), DeviceState(1980 - 300 * number, None, 640.0 + number)]
        process.repeats = number
    row = by_name(results_of(run, "r").rows)["torch"]
    assert row.gpu_sm_mhz == {"start": 345.0, "end": 1680.0}
    assert (row.gpu_temperature_c, row.gpu_power_w) == ({"start": 40.0}, {"start": 71.5, "end": 641.0})
    assert (row.gpu_memory_bytes, row.processes_repeated) == ({}, 3)


def test_of_several_gpus_each_has_its_own_state_by_its_name() -> None:
    run = a_run()
    unread = EnergyRead("nvml:1", None, None, None, "the sensor reported no energy")
    own = [process for process in run.processes if process.contestant == "torch"]
    for process in own:
        before = [DeviceState(345, 40, None, 10, 100, f"cuda:{gpu}", f"nvml:{gpu}") for gpu in (3, 1)]
        after = [
            DeviceState(1980 - gpu, 60 + gpu, 300.0 + gpu, 20, 100, f"cuda:{gpu}", f"nvml:{gpu}") for gpu in (3, 1)
        ]
        process.device_states = [*before, *after]
        process.energy = EnergyOfBlock(1.0, 10, [unread], sm_mhz_by_sensor={"nvml:1": 1500.0, "nvml:3": 1600.0})
    row = by_name(results_of(run, "r").rows)["torch"]
    assert row.gpu_sm_mhz == {
        "cuda:3 start": 345.0,
        "cuda:1 start": 345.0,
        "cuda:3 end": 1977.0,
        "cuda:1 end": 1979.0,
        "cuda:1 measured": 1500.0,
        "cuda:3 measured": 1600.0,
    }
    assert row.gpu_power_w == {"cuda:3 end": 303.0, "cuda:1 end": 301.0}
    assert row.gpu_temperature_c["cuda:1 end"] == 61.0
    assert row.gpu_memory_bytes["cuda:3 end"] == 20.0


def test_the_conditions_of_the_gpu_at_the_calls_are_in_the_row() -> None:
    run = a_run()
    assert by_name(results_of(run, "r").rows)["torch"].absent["device_cache"] == "it ran on the processor"
    run = msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, device="cuda:0"))
    warm = by_name(results_of(run, "r").rows)["torch"]
    assert (warm.device_cache, warm.device_regime) == ("warm", None)
    for process in run.processes:
        process.device_conditions = {"cache": "flushed", "regime": "burst"}
    cold = by_name(results_of(run, "r").rows)["torch"]
    assert (cold.device_cache, cold.device_regime) == ("flushed", "burst")


def test_what_is_absent_says_why() -> None:
    rows = by_name(results_of(a_run(), "r").rows)
    assert rows["jax:fast"].absent["ratio"] == "it is the baseline"
    assert rows["torch"].absent["time_to_first_gradient_s"] == "no gradients were measured"
    assert rows["torch"].absent["cost_per_1000_items"] == "no price was given"
    assert rows["torch"].absent["energy_per_item_j"] == "no source of power was read"
    gradients = by_name(results_of(a_run(mode="grad"), "r").rows)["torch"]
    assert gradients.absent["time_to_first_inference_s"] == "gradients were measured"
    assert gradients.time_to_first_gradient_s is not None
    nobody = by_name(results_of(a_run(), "r", baseline="tensorflow").rows)["torch"]
    assert nobody.absent["ratio"] == "the baseline tensorflow is not ranked"


def test_memory_has_its_two_phases_and_its_layers_say_why_they_are_absent() -> None:
    run = a_run()
    for process in run.processes:
        absent = {"peak_while_running": "clear_refs could not be written", "driver": "no device"}
        process.memory = Memory(process.memory.bytes | {"peak_until_ready": 1_000_000}, absent)
    row = by_name(results_of(run, "r").rows)["torch"]
    assert row.peak_memory_until_ready_bytes is not None
    assert row.peak_memory_until_ready_bytes.value == pytest.approx(1_000_000)
    assert row.absent["peak_memory_while_running_bytes"] == "clear_refs could not be written"
    assert row.memory_absent == {"peak_while_running": "clear_refs could not be written", "driver": "no device"}
    run.processes[0].memory.bytes["driver"] = run.processes[1].memory.bytes["driver"] = 5
    assert "driver" not in by_name(results_of(run, "r").rows)["torch"].memory_absent
    silent = by_name(results_of(a_run(), "r").rows)["torch"]
    assert silent.absent["peak_memory_while_running_bytes"] == "the worker did not report it"


def test_the_column_of_a_peak_and_its_layer_are_one_figure_in_whole_bytes() -> None:
    run = a_run()
    own = [process for process in run.processes if process.contestant == "torch"]
    for number, process in enumerate(own):
        process.memory.bytes.update({"peak": 85_590_017 + 4_096 * number**2})
    row = by_name(results_of(run, "r").rows)["torch"]
    assert row.peak_memory_bytes is not None
    assert row.peak_memory_bytes.value == row.memory_bytes["peak"] == own[3].memory.bytes["peak"]
    assert row.peak_memory_bytes.low is not None
    assert row.peak_memory_bytes.high is not None
    for figure in (row.peak_memory_bytes.low, row.peak_memory_bytes.high):
        assert figure in [process.memory.bytes["peak"] for process in own]


def test_a_search_for_the_smallest_memory_that_was_asked_for_and_has_no_answer_was_not_finished() -> None:
    run = a_run()
    row = by_name(results_of(run, "r").rows)["torch"]
    assert row.absent["min_memory_bytes"].startswith("it was not looked for here; --min-memory does")
    run.plan = msgspec.structs.replace(run.plan, min_memory=True)
    run.processes[-1].smallest_memory = SmallestMemory("address space", 2**28, 2**23, 7)
    done, broken_off = (
        by_name(results_of(run, "r").rows)[name] for name in _one_and_the_other(run.processes[-1].contestant)
    )
    assert done.min_memory_bytes == 2**28
    assert broken_off.absent["min_memory_bytes"] == broken_off.absent["min_memory_tries"]
    assert broken_off.absent["min_memory_bytes"] == (
        "the search for it was interrupted or not reached; fairlap compare --resume finishes it"
    )
    as_found = a_run()
    as_found.plan = msgspec.structs.replace(as_found.plan, min_memory=True)
    for process in as_found.processes[::2]:
        process.conditions = "as-found"
    beside = [row for row in results_of(as_found, "r").rows if row.conditions != as_found.plan.headline]
    assert beside
    assert all(row.absent["min_memory_bytes"].startswith("it was not looked for here") for row in beside)


def _one_and_the_other(one: str) -> tuple[str, str]:
    return one, "torch" if one == "jax:fast" else "jax:fast"


def test_one_that_never_finished_has_reasons_in_the_place_of_figures() -> None:
    run = a_run()
    for process in run.processes:
        if process.contestant == "torch":
            crashed(process)
    row = by_name(results_of(run, "r").rows)["torch"]
    assert row.outcome == "crash"
    assert row.latency_p50_ns is None
    assert row.absent["latency_p50_ns"] == "crash: ended by SIGSEGV"
    assert row.absent["place"].startswith("1 contestant can be ranked")


def test_other_work_once_decides_the_outcome() -> None:
    run = a_run()
    own = [process for process in run.processes if process.contestant == "torch"]
    for process in own[:3]:
        crashed(process)
    own[3].outcome, own[3].message = "disqualified", "a wrong answer"
    assert by_name(results_of(run, "r").rows)["torch"].outcome == "disqualified"


def test_of_several_modes_no_average_is_made() -> None:
    run = a_run()
    own = [process for process in run.processes if process.contestant == "torch"]
    for process in own[:4]:
        figure = process.timings["wall_ns"]
        process.timings["wall_ns"] = msgspec.structs.replace(figure, p50_ns=3 * figure.p50_ns)
    row = by_name(results_of(run, "r").rows)["torch"]
    assert [mode.share for mode in row.modes] == [0.5, 0.5]
    assert row.latency_p50_ns is not None
    assert row.latency_p50_ns.value in [process.headline_ns for process in own]
    assert row.latency_p50_ns.low is None


def test_few_processes_carry_no_interval() -> None:
    row = results_of(a_run(blocks=3), "r").rows[0]
    assert row.latency_p50_ns is not None
    assert (row.latency_p50_ns.low, row.latency_p50_ns.high) == (None, None)


def test_a_thousand_items_cost_what_the_hour_costs_for_their_share() -> None:
    row = by_name(results_of(a_run(), "r", price=Price(3.6, "EUR")).rows)["torch"]
    assert row.currency == "EUR"
    assert row.cost_per_1000_items is not None
    # 250 calls of 2 ms are half a second, at 0.001 a second.
    assert row.cost_per_1000_items.value == pytest.approx(0.0005, rel=0.01)


@pytest.mark.parametrize(
    ("text", "price"),
    [("1.212/h", (1.212, "USD")), ("1.10 EUR/h", (1.10, "EUR")), ("2eur/h", (2.0, "EUR"))],
)
def test_a_price_is_an_amount_an_hour(text: str, price: tuple[float, str]) -> None:
    given = price_given(text)
    assert (given.per_hour, given.currency) == price


@pytest.mark.parametrize("text", ["", "free", "1.2", "-1/h", "0/h", "1/day", "nan/h", "1 EURO/h"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="price"):
        price_given(text)


def test_an_absent_value_without_a_reason_cannot_be_made() -> None:
    row = results_of(a_run(), "r").rows[0]
    with pytest.raises(ValueError, match="latency_p50_ns"):
        msgspec.structs.replace(row, latency_p50_ns=None)
    with pytest.raises(ValueError, match="message"):
        msgspec.structs.replace(row, absent={**row.absent, "message": "none"})


def test_every_field_is_a_column_and_every_estimate_three() -> None:
    names = [column.name for column in columns()]
    assert len(set(names)) == len(names)
    assert {column.field for column in columns()} == set(Row.__struct_fields__)
    at = names.index("latency_p50_ns")
    assert names[at : at + 3] == ["latency_p50_ns", "latency_p50_ns_low", "latency_p50_ns_high"]
    assert all(column.meaning.endswith(".") and column.group for column in columns())


def test_a_row_is_flattened_into_its_columns() -> None:
    row = by_name(results_of(a_run(), "r").rows)["jax:fast"]
    cells = flat(row)
    assert list(cells) == [column.name for column in columns()]
    assert cells["latency_p50_ns"] == row.latency_p50_ns.value  # type: ignore[union-attr]
    assert (cells["ratio"], cells["ratio_low"]) == (None, None)
    assert msgspec.json.decode(cells["settings"]) == row.settings


def test_a_row_survives_json() -> None:
    for row in results_of(a_run(), "r").rows:
        assert msgspec.json.decode(msgspec.json.encode(row), type=Row) == row


def test_equal_machines_have_equal_fingerprints() -> None:
    one, other = a_run(), a_run()
    other.machine = dict(reversed(other.machine.items()))
    assert results_of(one, "a").rows[0].machine == results_of(other, "b").rows[0].machine
    other.machine["cores"] = "3"
    assert results_of(one, "a").rows[0].machine != results_of(other, "b").rows[0].machine
    other.processes[0].version = "9"
    assert {row.environment for row in results_of(one, "a").rows} != {
        row.environment for row in results_of(other, "b").rows
    }


def test_a_run_is_read_back_from_its_file_also_when_a_distance_could_not_be_reported(tmp_path: Path) -> None:
    run = a_run(mode="grad")
    run.processes[0].errors += [
        AnswerError("gradient along direction 0", "before", math.nan, math.nan, 1e-6, True),
        AnswerError("logits", "after", math.nan, math.inf, math.inf, False, "2 of 4 elements are not finite (NaN)"),
    ]
    save_run(tmp_path / "run.json", run)
    assert load_run(tmp_path / "run.json") == run


def test_an_answer_that_was_not_finite_leaves_no_error_figure_and_a_gradient_no_element() -> None:
    run = a_run()
    first, second = run.processes[0], run.processes[1]
    first.errors.append(AnswerError("logits", "after", math.nan, math.inf, math.inf, False, "not finite"))
    second.errors.append(AnswerError("gradient along direction 0", "before", math.nan, math.nan, 3e-7, True))
    rows = by_name(results_of(run, "r").rows)
    assert rows[first.contestant].absent["error_relative"] == "an answer was not finite"
    assert rows[first.contestant].absent["error_absolute"] == "an answer was not finite"
    assert (rows[second.contestant].error_relative, rows[second.contestant].error_absolute) == (3e-7, 2e-6)


def test_a_ratio_that_could_be_anything_has_no_interval() -> None:
    ratios = [row.ratio for row in results_of(a_run(blocks=3), "r").rows if row.ratio is not None]
    assert [(ratio.low, ratio.high) for ratio in ratios] == [(None, None)]


def test_a_race_for_the_winner_compares_only_the_fastest_with_the_others() -> None:
    run = a_run(listed="torch,jax,onnxruntime")
    run.plan = msgspec.structs.replace(run.plan, until_decided=True, only_winner=True)
    found = results_of(run, "r", baseline="torch")
    [work_result] = found.work_results
    assert {frozenset((each.a, each.b)) for each in work_result.comparisons} == {
        frozenset(("onnxruntime", "torch")),
        frozenset(("onnxruntime", "jax")),
    }
    rows = {row.contestant: row for row in found.rows}
    assert rows["onnxruntime"].verdict == "faster"
    assert rows["jax"].verdict is None
    assert "fastest" in rows["jax"].absent["verdict"]


@pytest.mark.parametrize(
    ("seeds", "swapped", "expected"),
    [((0, 0, 0, 0), (), None), ((0, 1, 0, 1), (), "no"), ((0, 1, 0, 1), (1, 3), "yes"), ((0, 1, 0, 1), (3,), "no")],
)
def test_a_row_says_whether_the_order_depends_on_the_data(
    seeds: tuple[int, ...], swapped: tuple[int, ...], expected: str | None
) -> None:
    run = a_run(blocks=4)
    for process in run.processes:
        process.data_seed = seeds[process.block]
        if process.block in swapped:
            process.contestant = {"torch": "jax:fast", "jax:fast": "torch"}[process.contestant]
    assert {row.order_depends_on_data for row in results_of(run, "r").rows} == {expected}
