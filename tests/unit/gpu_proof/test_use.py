"""What the part on load, precision and memory makes of its figures, and the memory of a device that is faked."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.machine.hardware import cuda_devices
from gpu.proof.parts import use
from gpu.proof.record import Deadline, NotHere, PartRecord, read


def goals_of(folder: Path) -> dict[str, bool | None]:
    return {goal["goal"]: goal["reached"] for goal in (read(folder / "part.json") or {})["goals"]}


def memory_goal(used: Callable[[], int]) -> bool | None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(cuda_devices, "used_bytes", lambda _: used())
        record = PartRecord(Path(folder) / "part.json", 9, "made up")
        use._known_memory(record)
        return goals_of(Path(folder))["memory of the device: 1 GiB that was taken"]


@on_fakes
def test_memory_that_was_taken_must_be_found_in_use_and_is_given_back() -> None:
    """By what the fake driver has given out, in place of NVML, which does not know of the fake driver."""
    cuda = Machine().cuda
    assert memory_goal(lambda: int(cuda.fake_cuda_outstanding(b"device_bytes"))) is True
    assert memory_goal(lambda: 0) is False
    assert cuda.fake_cuda_outstanding(b"device_bytes") == 0


def row(precision: str, error: float, **more: Any) -> dict[str, Any]:
    held = {"allocator_live_peak": 10, "allocator_reserved_peak": 20, "driver": 500}
    return {"precision": precision, "outcome": "finished", "error_relative": error, "memory_bytes": held} | more


ERRORS = {"fp32": 1e-6, "tf32": 5e-4, "fp16": 4e-4, "bf16": 4e-3}
IN_ORDER = "errors in the order of their bits: fp32, then tf32 and fp16, then bf16"


@pytest.mark.parametrize(("changed", "reached"), [({}, True), ({"tf32": 1e-6}, False), ({"bf16": 1e-6}, False)])
def test_errors_must_grow_as_bits_are_left_out(tmp_path: Path, changed: dict[str, float], reached: bool) -> None:
    record = PartRecord(tmp_path / "part.json", 9, "made up")
    use.keep_precisions(record, [row(precision, error) for precision, error in (ERRORS | changed).items()])
    goals = goals_of(tmp_path)
    assert goals[IN_ORDER] is reached
    assert goals["convnet in fp32: its error"] is True


def test_a_precision_that_did_not_finish_leaves_its_goals_unknown(tmp_path: Path) -> None:
    record = PartRecord(tmp_path / "part.json", 9, "made up")
    rows = [row(precision, error) for precision, error in ERRORS.items()]
    use.keep_precisions(record, [rows[0], {**rows[1], "outcome": "unsupported", "message": "no"}, *rows[2:]])
    goals = goals_of(tmp_path)
    assert goals["convnet in tf32: its error"] is None
    assert goals[IN_ORDER] is None


@pytest.mark.parametrize(
    ("changed", "reached"),
    [
        ({}, [True, True]),
        ({"error_relative": 1e-6}, [False, True]),  # float32
        ({"error_relative": 0.9}, [False, True]),
        ({"settings": {"types_of_layers": "9 read fp32"}}, [True, False]),
        ({"outcome": "disqualified"}, [None, None]),
        ({"outcome": "unsupported", "error_relative": None, "settings": {}}, [None, None]),
    ],
)
def test_fp8_has_its_own_error_and_layers_that_read_it(
    tmp_path: Path, changed: dict[str, Any], reached: list[bool | None]
) -> None:
    record = PartRecord(tmp_path / "part.json", 9, "made up")
    use.keep_fp8(record, row("fp8", 0.08, **{"settings": {"types_of_layers": "4 read fp8"}, **changed}))
    assert list(goals_of(tmp_path).values()) == reached


@on_fakes
def test_without_tensorrt_fp8_is_left_out_and_old_gpus_have_nothing_to_prove() -> None:
    machine = Machine()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        record = PartRecord(Path(folder) / "part.json", 9, "made up")
        patch.setattr(use, "find_spec", lambda name: None if name == "tensorrt" else object())
        with pytest.raises(NotHere) as absent:
            use._fp8(record, Deadline(60))
        assert absent.value.package == "tensorrt"
        patch.setattr(use, "find_spec", lambda _: object())
        for attribute, value in ((75, 8), (76, 6)):
            machine.cuda.fake_cuda_set_device_attribute(0, attribute, value)
        use._fp8(record, Deadline(60))
        assert goals_of(Path(folder)) == {}


def test_a_rank_counts_only_if_it_finished_and_its_framework_says_nccl(tmp_path: Path) -> None:
    record = PartRecord(tmp_path / "part.json", 9, "made up")
    over = {name: {"ranks": f"DistributedDataParallel, {name}, 1 ranks", "gpu": "aa"} for name in ("nccl", "gloo")}
    rows = [
        {"contestant": "torch", "outcome": "finished", "message": "", "settings": over["nccl"]},
        {"contestant": "jax", "outcome": "finished", "message": "", "settings": over["gloo"]},
        {"contestant": "tensorflow", "outcome": "unsupported", "message": "no GPU", "settings": {}},
    ]
    use.keep_ranks(record, rows)
    assert list(goals_of(tmp_path).values()) == [True, False, None]
    assert [row["gpu"] for row in record.rows("a rank over NCCL")] == ["aa", "aa", ""]


def test_communicators_are_counted_in_nccls_own_log(tmp_path: Path) -> None:
    """The line is that of ``ncclCommInitRankFunc`` in NCCL's init.cc; a version is logged where none was made."""
    record = PartRecord(tmp_path / "part.json", 9, "made up")
    made = (
        "host:7:7 [0] NCCL INFO NCCL version 2.27.5+cuda12.9\n"
        "host:7:9 [0] NCCL INFO ncclCommInitRankConfig comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 5000 "
        "commId 0x2 - Init COMPLETE\n"
    )
    use.keep_communicators(record, {"nccl.7": made, "nccl.8": made.splitlines()[0]})
    [row] = record.rows("communicators of NCCL")
    assert (row["processes"], row["made"]) == (2, 1)


def test_layers_of_memory_contain_each_other(tmp_path: Path) -> None:
    record = PartRecord(tmp_path / "part.json", 9, "made up")
    wrong = {"allocator_live_peak": 30, "allocator_reserved_peak": 20, "driver": 500}
    rows = [row("fp32", 0.0), row("fp16", 0.0, memory_bytes=wrong), row("bf16", 0.0, memory_bytes={"driver": 1})]
    use.keep_memory(record, rows)
    assert list(goals_of(tmp_path).values()) == [True, False, None]
