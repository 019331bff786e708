"""The part on feeding on the fake driver: every figure is taken, whatever a made-up clock makes of it."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import pytest
from cuda_on_fakes import fakes, on_fakes
from gpu.proof.parts import feeding
from gpu.proof.record import Deadline, PartRecord, read


@pytest.mark.slow
@on_fakes
def test_copies_the_feeder_and_its_overlap_are_measured_without_any_framework() -> None:
    feeding.BATCHES_MIB = (1, 4)
    feeding.TURNS, feeding.FEED_S = 1, 0.02
    feeding.OVERLAP_MIB, feeding.OVERLAP_BATCHES = 1, 24
    feeding._DATA_MIB = 8
    cuda = ctypes.CDLL(str(fakes() / "libfairlap_fake_cuda.so"))
    cuda.fake_cuda_set_cost.argtypes = (ctypes.c_char_p, ctypes.c_int64)
    cuda.fake_cuda_set_cost(b"cuEventQuery", 1_000_000)  # time passes while the feeder's threads look
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "part.json"
        record = PartRecord(file, 6, "made up")
        feeding.run(record, Deadline(600))
        record.end()
        content = read(file)
    assert content is not None
    assert [each["step"] for each in content["left_out"]] == ["DataLoader with pin_memory"]  # this PyTorch has no CUDA
    tables = content["tables"]
    assert [(row["mib"], row["pinned"]) for row in tables["copies to the device"]] == [
        (1, True),
        (1, False),
        (4, True),
        (4, False),
    ]
    assert [(row["batch_mib"], row["order"]) for row in tables["the feeder"]] == [
        (1, "in order"),
        (1, "shuffled"),
        (4, "in order"),
        (4, "shuffled"),
    ]
    for row in tables["the feeder"]:
        assert row["gb_per_s"] > 0
        assert row["stalls_off_by_share"] < 0.01
    [overlap] = tables["copies while the device works"]
    assert overlap["both_s"] > 0
    assert 0 <= overlap["hidden_by_events"] <= 1
    goals = {goal["goal"]: goal for goal in content["goals"]}
    assert len(goals) == 7
    assert all(goal["figure"] is not None for goal in goals.values())
