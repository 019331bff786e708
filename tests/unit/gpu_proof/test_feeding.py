"""The part on feeding on the fake driver: every figure is taken, whatever a made-up clock makes of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cuda_on_fakes import on_fakes
from gpu.proof import part_6_feeding
from gpu.proof.record import Deadline, PartRecord, read


@on_fakes
def test_copies_the_feeder_and_its_overlap_are_measured_without_any_framework() -> None:
    part_6_feeding.BATCHES_MIB = (1, 4)
    part_6_feeding.TURNS, part_6_feeding.FEED_S = 1, 0.02
    part_6_feeding.OVERLAP_MIB, part_6_feeding.OVERLAP_BATCHES = 1, 4
    part_6_feeding._DATA_MIB = 8
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "part.json"
        record = PartRecord(file, 6, "made up")
        part_6_feeding.run(record, Deadline(600))
        record.end()
        told = read(file)
    assert told is not None
    assert not told["left_out"]
    tables = told["tables"]
    assert [(row["mib"], row["pinned"]) for row in tables["copies to the device"]] == [
        (1, True),
        (1, False),
        (4, True),
        (4, False),
    ]
    assert [(row["batch_mib"], row["order"]) for row in tables["the feeder"]] == [
        (1, "as it lies"),
        (1, "shuffled"),
        (4, "as it lies"),
        (4, "shuffled"),
    ]
    for row in tables["the feeder"]:
        assert row["gb_per_s"] > 0
        assert row["ledger_off_by_share"] < 0.01
    [overlap] = tables["copies while the device works"]
    assert overlap["both_s"] > 0
    goals = {goal["goal"]: goal for goal in told["goals"]}
    assert len(goals) == 6
    assert all(goal["figure"] is not None for goal in goals.values())
