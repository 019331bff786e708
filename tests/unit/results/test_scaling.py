"""What more threads and ranks bring, from runs whose times were planted."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fairlap.request.fields.scale import Scale
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results, results_of
from fairlap.results.row import Row
from fairlap.store.runs.run_file import load_run, save_run
from runs_at_scales import GRADIENT_BYTES, STEP_NS, a_run, ranks, threads
from runs_under_roofs import some_roofs

TWO = threads(1, 2)
THREE = ranks(1, 2, 4)


def row_at(results: Results, scale: Scale, contestant: str = "torch") -> Row:
    return next(row for row in results.rows if (row.contestant, row.scale) == (contestant, scale.text))


def bounds(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_a_planted_speed_up_is_found_with_its_interval_and_efficiency_follows() -> None:
    results = results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}), "r")
    row = row_at(results, TWO[1])
    assert row.speed_up is not None
    assert row.speed_up.value == pytest.approx(1.6, rel=0.02)
    low, high = bounds(row.speed_up)
    assert low < 1.6 < high
    assert row.efficiency is not None
    assert row.efficiency.value == pytest.approx(0.8, rel=0.02)
    assert bounds(row.efficiency) == pytest.approx((low / 2, high / 2))
    assert (row.speed_up_verdict, row.efficiency_verdict) == ("faster", "slower")
    assert (row.threads, row.ranks, row.hosts, row.scaling) == (2, 1, [], "")


def test_the_smallest_scale_is_the_reference() -> None:
    row = row_at(results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}), "r"), TWO[0])
    assert row.speed_up == row.efficiency == Estimate(1.0)
    assert row.absent["speed_up_verdict"] == row.absent["efficiency_verdict"] == "it is the smallest scale"


def test_twice_as_fast_on_two_threads_is_linear_and_no_faster_is_equivalent() -> None:
    linear = row_at(results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 2.0}), "r"), TWO[1])
    assert (linear.speed_up_verdict, linear.efficiency_verdict) == ("faster", "equivalent")
    flat = row_at(results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.0}), "r"), TWO[1])
    assert (flat.speed_up_verdict, flat.efficiency_verdict) == ("equivalent", "slower")
    slower = row_at(results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 0.7}), "r"), TWO[1])
    assert slower.speed_up_verdict == "slower"


def test_noise_of_a_whole_pass_cancels_since_scales_are_compared_within_it() -> None:
    run = a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}, noise_of_a_pass=0.5)
    low, high = bounds(row_at(results_of(run, "r"), TWO[1]).speed_up)
    assert low < 1.6 < high
    assert high / low < 1.03


def test_weak_scaling_compares_items_per_second_too() -> None:
    scales = ranks(1, 2, scaling="weak")
    results = results_of(a_run(scales, {scales[0]: 1.0, scales[1]: 1.8}), "r")
    row = row_at(results, scales[1])
    assert row.speed_up is not None
    assert row.speed_up.value == pytest.approx(1.8, rel=0.02)
    assert row.efficiency is not None
    assert row.efficiency.value == pytest.approx(0.9, rel=0.02)
    assert (row.batch, row.scaling) == (96, "weak")
    [series, _] = results.scaling
    assert series.weak
    assert series.work.batch == 48


def test_few_passes_have_no_interval_and_no_verdict() -> None:
    row = row_at(results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}, blocks=3), "r"), TWO[1])
    assert row.speed_up is not None
    assert row.speed_up.low is None
    assert row.speed_up_verdict == row.efficiency_verdict == "inconclusive"


def test_one_pass_has_figures_without_intervals() -> None:
    row = row_at(results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}, blocks=1), "r"), TWO[1])
    assert row.speed_up is not None
    assert row.speed_up.value == pytest.approx(1.6, rel=0.03)
    assert row.speed_up.low is None
    assert row.efficiency is not None
    assert row.efficiency.value == pytest.approx(0.8, rel=0.03)
    assert row.speed_up_verdict == row.efficiency_verdict == "inconclusive"


def test_one_scale_has_no_speed_up_and_gives_the_reason() -> None:
    run = a_run(TWO[:1], {TWO[0]: 1.0})
    row = row_at(results_of(run, "r"), TWO[0])
    assert row.speed_up is None
    assert row.absent["speed_up"] == "the work was raced at one scale"
    assert results_of(run, "r").scaling == ()


def test_a_scale_that_failed_is_absent_with_its_reason_and_the_others_stay() -> None:
    scales = threads(1, 2, 4)
    run = a_run(scales, {scales[0]: 1.0, scales[1]: 1.6, scales[2]: 2.0})
    for process in run.processes:
        if process.contestant == "torch" and run.plan.work_with(process.work_id).scale == scales[2]:
            process.outcome, process.message, process.timings = "crash", "SIGSEGV", {}
    results = results_of(run, "r")
    assert "SIGSEGV" in row_at(results, scales[2]).absent["speed_up"]
    assert row_at(results, scales[1]).speed_up is not None
    assert row_at(results, scales[2], "jax").speed_up is not None
    for process in run.processes:
        if process.contestant == "torch" and run.plan.work_with(process.work_id).scale == scales[0]:
            process.outcome, process.message, process.timings = "crash", "SIGSEGV", {}
    row = row_at(results_of(run, "r"), scales[1])
    assert row.speed_up is None
    assert "1 thread" in row.absent["speed_up"]


def test_contestants_are_compared_with_each_other_at_one_scale() -> None:
    results = results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}), "r")
    assert {comparison.workload for each in results.work_results for comparison in each.comparisons} == {
        work.id for work in results.run.plan.works
    }


def test_threads_of_the_host_have_no_efficiency_where_a_gpu_does_the_work() -> None:
    run = a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.1})
    run.plan = msgspec.structs.replace(run.plan, device="cuda:0")
    row = row_at(results_of(run, "r"), TWO[1])
    assert row.speed_up is not None
    assert row.efficiency is None
    assert "cuda:0" in row.absent["efficiency"]


def test_a_planted_exchange_of_20_ms_is_found_within_a_tenth() -> None:
    speed_ups = dict.fromkeys(THREE, 1.0)
    results = results_of(a_run(THREE, speed_ups, exchange_ns=20e6), "r")
    row = row_at(results, THREE[1])
    assert row.exchange_ns is not None
    assert row.exchange_ns.value == pytest.approx(20e6, rel=0.1)
    assert row.exchange_share is not None
    assert row.exchange_share.value == pytest.approx(20e6 / STEP_NS, rel=0.1)
    low, high = bounds(row.exchange_ns)
    assert low <= 20e6 <= high
    assert row.straggler is None
    assert not any(each.code == "W_STRAGGLER" for each in row.warnings)
    one = row_at(results, THREE[0])
    assert one.exchange_ns is None
    assert one.absent["exchange_ns"] == "it is one process"


@pytest.mark.parametrize("again", [1.4, 0.85])
def test_a_warning_says_that_steps_took_another_time_in_turns_than_in_the_measurement(again: float) -> None:
    run = a_run(THREE, dict.fromkeys(THREE, 1.0), exchange_ns=20e6, again=again)
    row = row_at(results_of(run, "r"), THREE[1])
    assert row.exchange_ns is not None
    assert row.exchange_ns.value == pytest.approx(again * STEP_NS - (STEP_NS - 20e6), rel=0.1)  # that of the turns
    assert "W_EXCHANGE_UNSTEADY" in [each.code for each in row.warnings]


@pytest.mark.parametrize(("again", "blocks"), [(1.05, 12), (1.4, 4)])
def test_there_is_no_such_warning_below_a_tenth_or_without_an_interval(again: float, blocks: int) -> None:
    run = a_run(THREE, dict.fromkeys(THREE, 1.0), exchange_ns=20e6, again=again, blocks=blocks)
    row = row_at(results_of(run, "r"), THREE[1])
    assert "W_EXCHANGE_UNSTEADY" not in [each.code for each in row.warnings]


@pytest.mark.parametrize("rank", [0, 2])
def test_a_planted_straggler_is_named_with_what_it_takes_longer_within_a_tenth(rank: int) -> None:
    run = a_run(THREE, dict.fromkeys(THREE, 1.0), exchange_ns=20e6, slow_rank=rank, slow_by=0.25)
    row = row_at(results_of(run, "r"), THREE[2])
    assert row.straggler == f"rank {rank}"
    assert row.slowest_rank_excess is not None
    assert row.slowest_rank_excess.value == pytest.approx(0.25, rel=0.1)
    assert "W_STRAGGLER" in [each.code for each in row.warnings]
    assert row.exchange_ns is not None
    assert row.exchange_ns.value == pytest.approx(20e6, rel=0.1)  # waiting for it is no exchange


def test_a_rank_that_is_slower_by_less_than_a_tenth_is_no_straggler() -> None:
    run = a_run(THREE, dict.fromkeys(THREE, 1.0), slow_rank=1, slow_by=0.05)
    row = row_at(results_of(run, "r"), THREE[2])
    assert row.straggler is None
    assert row.slowest_rank_excess is not None
    assert row.slowest_rank_excess.value == pytest.approx(0.05, rel=0.1)


def test_memory_is_that_of_the_largest_rank_and_energy_is_shared() -> None:
    row = row_at(results_of(a_run(THREE, dict.fromkeys(THREE, 1.0)), "r"), THREE[2])
    assert row.largest_rank_memory_bytes is not None
    assert row.largest_rank_memory_bytes.value == pytest.approx(1_003_000)
    assert row.energy_per_item_j is not None
    assert row.energy_per_item_j.value == pytest.approx(480.0 / 100 / 48)
    assert row.energy_per_item_and_rank_j is not None
    assert row.energy_per_item_and_rank_j.value == pytest.approx(480.0 / 100 / 48 / 4)


def test_on_other_hosts_there_is_no_energy_and_a_straggler_is_named_with_its_host() -> None:
    scales = (Scale(1, 1, "strong", ("a",)), Scale(1, 2, "strong", ("a", "b")))
    run = a_run(scales, dict.fromkeys(scales, 1.0), slow_rank=1, slow_by=0.5)
    row = row_at(results_of(run, "r"), scales[1])
    assert row.straggler == "rank 1 on b"
    assert row.energy_per_item_j is None
    assert row.energy_per_item_and_rank_j is None
    assert row.hosts == ["a", "b"]


def test_a_projection_needs_three_scales_and_finds_the_law_that_was_planted() -> None:
    [few, *_] = results_of(a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}), "r").scaling
    assert few.projection.law is None
    assert "3 scales" in few.projection.why
    assert list(few.projected()) == []
    scales = threads(1, 2, 4, 8)
    law = {scale: scale.threads / (1 + 0.1 * (scale.threads - 1)) for scale in scales}
    [series, *_] = results_of(a_run(scales, law), "r").scaling
    assert series.projection.law is not None
    assert series.projection.law.sigma.low < 0.1 < series.projection.law.sigma.high
    sizes = [size for size, _ in series.projected()]
    assert (sizes[0], sizes[-1]) == pytest.approx((1, 64))


def test_exchanges_at_several_ranks_tell_latency_from_bandwidth() -> None:
    scales = ranks(1, 2, 4, 8)
    run = a_run(scales, dict.fromkeys(scales, 1.0), exchange_ns=20e6)
    [series, *_] = results_of(run, "r").scaling
    exchange = series.projection.exchange
    assert exchange is not None
    assert exchange.exchange_ns(4, GRADIENT_BYTES).value == pytest.approx(20e6, rel=0.3)
    [two, *_] = results_of(a_run(scales[:2], dict.fromkeys(scales[:2], 1.0), exchange_ns=20e6), "r").scaling
    assert two.projection.exchange is None


def test_threads_and_ranks_together_have_speed_ups_and_no_projection() -> None:
    scales = (Scale(1, 1), Scale(2, 1), Scale(1, 2), Scale(2, 2))
    results = results_of(a_run(scales, {scale: float(scale.cores) for scale in scales}), "r")
    assert row_at(results, scales[3]).efficiency_verdict == "equivalent"
    assert results.scaling[0].projection.law is None
    assert "both" in results.scaling[0].projection.why


def test_each_scale_has_the_roofs_of_its_threads_and_ranks_have_none() -> None:
    scales = (Scale(1), Scale(2), Scale(1, 2))
    run = a_run(scales, {scales[0]: 1.0, scales[1]: 1.6, scales[2]: 1.7})
    twice = {
        name: msgspec.structs.replace(roof, value=2 * roof.value)
        for name, roof in some_roofs().operations_per_s.items()
    }
    run.roofs = msgspec.structs.replace(
        some_roofs(), threads=2, operations_per_s=twice, with_fewer_threads=(some_roofs(),)
    )
    rows = [row_at(results_of(run, "r"), scale) for scale in scales]
    shares = [row.roof_share for row in rows[:2]]
    assert shares[0] is not None
    assert shares[1] == pytest.approx(shares[0] * 1.6 / 2, rel=0.03)
    assert rows[2].roof_share is None
    assert "ranks" in rows[2].absent["roof_share"]


def test_rows_survive_a_file(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    run = a_run(THREE, dict.fromkeys(THREE, 1.0), exchange_ns=20e6)
    save_run(file, run)
    assert results_of(load_run(file), "r").rows == results_of(run, "r").rows
