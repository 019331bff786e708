from __future__ import annotations

import numpy as np
import pytest
from fairlap.frameworks.contract import Unsupported
from fairlap.meters.memory import Memory
from fairlap.scenarios.asking import Prepared
from fairlap.scenarios.calls.latency_messages import Drawn, DrawnResult, Measure, Measured, MeasuredQuantity, Reading
from fairlap.scenarios.ranks.ranks_messages import SteppedAlone
from fairlap.worker.protocol import Prepare
from fairlap.worker.ranks import merging
from fairlap.worker.ranks.conductor import fixed_calls

REQUEST = Prepare("torch", "fairlap.bench_models.mlp", 8, 2, "w", "i", "c")


def measured(values: list[float], cpu_ns: int, drawn: Drawn = Drawn()) -> tuple[Measured, bytes]:  # noqa: B008
    quantity = MeasuredQuantity("wall_ns", len(values), "method", 1.0)
    message = Measured([quantity], 1, "samples", 1.0, 8 * len(values), counts={"process_cpu_ns": cpu_ns}, drawn=drawn)
    return message, np.asarray(values, "<f8").tobytes()


def test_a_sample_is_that_of_the_slowest_rank() -> None:
    merged, [raw] = merging.merged_measured([measured([1.0, 5.0], 10), measured([2.0, 4.0], 20)])
    assert np.frombuffer(raw).tolist() == [2.0, 5.0]
    assert merged.counts == {"process_cpu_ns": 30}
    assert merged.bytes == 16


def test_an_invalid_sample_of_one_rank_is_invalid() -> None:
    _, [raw] = merging.merged_measured([measured([1.0, np.nan], 0), measured([2.0, 4.0], 0)])
    assert np.isnan(np.frombuffer(raw)).tolist() == [False, True]


def test_a_drawn_call_takes_as_long_as_its_slowest_rank() -> None:
    one = Drawn((DrawnResult(0, 5.0, Reading(read_s=9.0), 1.0),), 1.0)
    other = Drawn((DrawnResult(0, 7.0, Reading(read_s=1.0), 2.0),), 0.5)
    merged, _ = merging.merged_measured([measured([1.0], 0, one), measured([1.0], 0, other)])
    assert merged.drawn == Drawn((DrawnResult(0, 7.0, Reading(read_s=1.0), 3.0),), 1.5)


def test_answers_of_inference_follow_each_other() -> None:
    merged = merging.merged_arrays([{"0/y": np.ones((2, 3))}, {"0/y": np.zeros((2, 3))}], "infer")
    assert merged["0/y"][:, 0].tolist() == [1, 1, 0, 0]


def test_training_has_the_mean_loss_and_the_state_of_every_rank() -> None:
    ranks = [
        {"0/loss": np.float32(1), "0/weight/w": np.ones(2), "0/before/weight/w": np.zeros(2)},
        {"0/loss": np.float32(3), "0/weight/w": np.full(2, 5.0), "0/before/weight/w": np.zeros(2)},
    ]
    merged = merging.merged_arrays([{name: np.asarray(each) for name, each in rank.items()} for rank in ranks], "train")
    assert float(merged["0/loss"]) == 2
    assert merged["0/weight/w"].tolist() == [1, 1]
    assert merged["0/rank/1/weight/w"].tolist() == [5, 5]
    assert set(merged) == {"0/loss", "0/weight/w", "0/rank/1/weight/w", "0/before/weight/w"}


def test_a_rank_whose_answer_lacks_something_is_refused() -> None:
    with pytest.raises(Unsupported):
        merging.merged_arrays([{"y": np.ones(1)}, {}], "infer")


def test_a_wrong_number_of_threads_in_one_rank_is_not_hidden() -> None:
    replies = [Prepared("1", {"threads": "2", "x": "a"}, "h"), Prepared("1", {"threads": "4", "x": "b"}, "h")]
    merged = merging.merged_prepared(replies, ["a", "b"], REQUEST)
    assert merged.in_force == {"threads": "4", "x": "rank 0: a; rank 1: b"}
    assert merged.hosts == ("a", "b")


def test_other_weights_in_one_rank_are_no_hash() -> None:
    replies = [Prepared("1", {}, "h"), Prepared("1", {}, "g")]
    assert merging.merged_prepared(replies, ["a", "a"], REQUEST).weights_hash == merging.OTHER_WEIGHTS


def test_steps_together_take_as_long_as_the_last_rank() -> None:
    merged = merging.merged_steps([SteppedAlone((1.0, 4.0), ((1.0, 1.0),)), SteppedAlone((2.0, 3.0), ((5.0, 6.0),))])
    assert merged == SteppedAlone((2.0, 4.0), ((1.0, 1.0), (5.0, 6.0)))


def test_memory_of_all_ranks_is_their_sum_where_all_report_it() -> None:
    merged = merging.merged_memory([Memory({"peak": 3, "driver": 1}, {}), Memory({"peak": 4}, {"driver": "none"})])
    assert merged.bytes == {"peak": 7}
    assert merged.absent == {"driver": "none"}


def test_a_measurement_by_time_becomes_one_by_calls() -> None:
    fixed = fixed_calls(Measure(seconds=1.0), 1e6)
    assert (fixed.seconds, fixed.samples, fixed.calls_per_sample) == (None, 1000, 1)
    assert fixed.warmup == 150


def test_short_calls_share_a_sample() -> None:
    fixed = fixed_calls(Measure(seconds=1.0, warmup=5), 1e3)
    assert (fixed.calls_per_sample, fixed.samples, fixed.warmup) == (20, 50_000, 5)
