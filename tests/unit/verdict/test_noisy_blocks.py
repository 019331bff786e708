"""The gate drops whole blocks, blind to who ran, and counts them."""

import numpy as np
import pytest
from fairlap.verdict import BadOption, GateLimits, UnequalBlocks, noise_gate
from fairlap.verdict.warnings import ManyBlocksDropped

QUIET = np.full((10, 3), 0.001)


def steal(**hits: float) -> np.ndarray:
    values = QUIET.copy()
    for place, value in hits.items():
        block, process = map(int, place[1:].split("_"))
        values[block, process] = value
    return values


def test_a_block_with_one_disturbed_process_goes_as_a_whole_and_is_counted() -> None:
    outcome = noise_gate({"steal share": steal(b4_1=0.03, b7_2=0.021, b8_0=0.02)})
    assert np.flatnonzero(~outcome.kept).tolist() == [4, 7]
    assert outcome.dropped == 2
    assert outcome.dropped_by == {"steal share": 2}
    assert outcome.warnings == ()


def test_shuffling_the_processes_of_a_block_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    readings = {"steal share": rng.uniform(0, 0.025, (20, 4)), "run queue": rng.gamma(1.0, 1.0, (20, 4))}
    shuffled = {name: rng.permuted(values, axis=1) for name, values in readings.items()}
    assert noise_gate(readings).kept.tolist() == noise_gate(shuffled).kept.tolist()
    assert not noise_gate(readings).kept.all()


def test_any_throttling_drops_the_block() -> None:
    throttled = np.zeros((10, 3))
    throttled[2, 0] = 1
    outcome = noise_gate({"throttled": throttled, "steal share": steal(b2_1=0.5)})
    assert np.flatnonzero(~outcome.kept).tolist() == [2]
    assert outcome.dropped_by == {"throttled": 1, "steal share": 1}


def test_other_readings_are_judged_against_the_run() -> None:
    switches = np.tile(np.array([100.0, 110, 90, 120, 100, 80, 110, 100, 90, 100])[:, None], (1, 2))
    switches[3, 1] = 1000.0
    assert np.flatnonzero(~noise_gate({"involuntary switches": switches}).kept).tolist() == [3]
    # The median is 100 and the robust spread 14.8, so the limit is 100 + 6 x 14.8 = 189.
    switches[3, 1] = 188.0
    assert noise_gate({"involuntary switches": switches}).kept.all()
    switches[3, 1] = 190.0
    assert noise_gate({"involuntary switches": switches}).dropped == 1


def test_a_reading_that_hardly_varies_needs_half_as_much_again() -> None:
    queue = np.full((10, 2), 2.0)
    queue[5] = 2.9
    assert noise_gate({"run queue": queue}).kept.all()
    queue[5] = 3.1
    assert noise_gate({"run queue": queue}).dropped == 1


def test_readings_that_are_too_small_to_matter_drop_nothing() -> None:
    queue = np.full((10, 2), 0.001)
    queue[5] = 0.05
    assert noise_gate({"run queue": queue}).kept.all()
    queue[5] = 0.051
    assert noise_gate({"run queue": queue}).dropped == 1


def test_one_whose_threads_always_wait_does_not_hide_what_befell_the_others() -> None:
    rng = np.random.default_rng(0)
    queue = np.column_stack([rng.uniform(0.1, 0.6, 12), rng.uniform(0.0, 0.02, (12, 2))])
    queue[4, 1] = 0.5
    outcome = noise_gate({"run queue": rng.permuted(queue, axis=1)})
    assert np.flatnonzero(~outcome.kept).tolist() == [4]


def test_missing_readings_drop_nothing() -> None:
    missing = np.full((10, 3), np.nan)
    partly = steal(b1_1=np.nan, b1_2=0.5)
    outcome = noise_gate({"steal share": partly, "run queue": missing})
    assert np.flatnonzero(~outcome.kept).tolist() == [1]
    assert outcome.dropped_by == {"steal share": 1}


def test_a_block_read_by_nobody_stays() -> None:
    values = steal(b5_0=0.5)
    values[3] = np.nan
    outcome = noise_gate({"steal share": values})
    assert np.flatnonzero(~outcome.kept).tolist() == [5]


def test_dropping_more_than_a_quarter_is_a_doubt() -> None:
    few = noise_gate({"steal share": steal(b0_0=1.0, b1_0=1.0)})
    many = noise_gate({"steal share": steal(b0_0=1.0, b1_0=1.0, b2_0=1.0)})
    assert few.warnings == ()
    assert many.warnings == (ManyBlocksDropped(3, 10),)
    exactly = noise_gate({"steal share": np.where(np.arange(8)[:, None] < 2, 1.0, 0.0)})
    assert exactly.warnings == ()


def test_the_noisiest_blocks_can_be_told_from_the_others() -> None:
    throttled = np.zeros((10, 3))
    throttled[7, 2] = 0.001
    outcome = noise_gate({"steal share": steal(b2_1=0.04, b4_0=0.03), "throttled": throttled})
    assert outcome.excess[[2, 4, 7]].tolist() == [2.0, 1.5, np.inf]
    assert outcome.excess.max(where=outcome.kept, initial=0) == pytest.approx(0.05)


def test_limits_can_be_chosen() -> None:
    limits = GateLimits(absolute={"steal share": 0.5}, relative={"temperature": 0.0})
    assert noise_gate({"steal share": steal(b0_0=0.4)}, limits).kept.all()
    assert noise_gate({"temperature": steal(b0_0=0.4)}, limits).dropped == 1


def test_readings_that_cannot_be_judged_are_refused() -> None:
    with pytest.raises(BadOption, match="humidity"):
        noise_gate({"humidity": QUIET})
    with pytest.raises(BadOption):
        noise_gate({})
    with pytest.raises(UnequalBlocks):
        noise_gate({"steal share": QUIET, "throttled": QUIET[:5]})
