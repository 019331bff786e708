"""All of the proof that needs no framework runs on the fakes, so that nothing breaks for the first time on the day."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cuda_on_fakes import environment_with_fakes, fakes, on_fakes
from gpu.proof.parts import gpu_tests, telemetry
from gpu.proof.record import Deadline, NotHere, PartRecord, read

_NEEDS_MORE = ("rehearsal on fakes", "two GPUs")


@pytest.fixture
def with_fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For the processes that a part starts; and a compute-sanitizer that finds nothing."""
    for name, value in {**environment_with_fakes(), "FAIRLAP_GPU_REHEARSAL": "1"}.items():
        monkeypatch.setenv(name, value)
    sanitizer = tmp_path / "bin/compute-sanitizer"
    sanitizer.parent.mkdir()
    sanitizer.write_text(_SANITIZER)
    sanitizer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sanitizer.parent}{os.pathsep}{os.environ['PATH']}")


_SANITIZER = """#!/bin/sh
while [ "$1" != "-m" ]; do program=$1; shift; done
"$program" "$@" && echo "========= ERROR SUMMARY: 0 errors"
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("with_fakes")
def test_the_tests_of_a_gpu_pass_on_the_fakes_unless_they_need_a_framework(tmp_path: Path) -> None:
    record = PartRecord(tmp_path / "part.json", 1, "made up")
    gpu_tests.run(record, Deadline(1200))
    record.end()
    content = read(tmp_path / "part.json")
    assert content is not None
    assert content["status"] == "finished", content["reason"]
    tests = content["tables"]["tests"]
    assert [row for row in tests if row["outcome"] not in ("passed", "skipped")] == []
    skipped = [row["note"] for row in tests if row["outcome"] == "skipped"]
    assert [reason for reason in skipped if not any(words in reason for words in _NEEDS_MORE)] == []
    assert sum(row["outcome"] == "passed" for row in tests) >= 30
    assert [row["outcome"] for row in content["tables"]["compute-sanitizer"]] == ["clean"] * len(gpu_tests._TOOLS)
    assert all(goal["reached"] for goal in content["goals"]), content["goals"]


_FOUND = """========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_INVALID_CONTEXT (error 201) due to "invalid device context" on CUDA API call to cuX.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: python3 [0x1234]
=========
========= Leaked 1,024 bytes at 0x7f0000000000
=========     Saved host backtrace up to driver entry point at allocation time
========= Leaked 1,024 bytes at 0x7f0000000400
========= LEAK SUMMARY: 2048 bytes leaked in 2 allocations
========= ERROR SUMMARY: 3 errors"""


@pytest.mark.parametrize(
    ("printed", "status", "outcome", "note"),
    [
        (
            _FOUND,
            86,
            "errors",
            "LEAK SUMMARY: 2048 bytes leaked in 2 allocations; ERROR SUMMARY: 3 errors; Program hit "
            'CUDA_ERROR_INVALID_CONTEXT (error 201) due to "invalid device context" on CUDA API call to cuX.; '
            "Leaked 1,024 bytes at 0x...",
        ),
        (
            "========= Target application returned an error\n========= ERROR SUMMARY: 12 errors",
            86,
            "errors, and the program failed",
            "CudaError: boom; ERROR SUMMARY: 12 errors; Target application returned an error",
        ),
        ("no such device", 1, "ended with status 1", "CudaError: boom; no such device"),
        (
            "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
            1,
            "ended with status 1",
            "CudaError: boom; RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
        ),
    ],
    ids=["found", "the program failed under a tool that finds that", "refused", "the program failed"],
)
@pytest.mark.usefixtures("with_fakes")
def test_what_a_sanitizer_finds_or_refuses_is_a_goal_that_was_missed(
    tmp_path: Path, printed: str, status: int, outcome: str, note: str
) -> None:
    """An H100's page had "12 errors" and not which, and called errors what racecheck had found none in.

    A program that fails is an error to compute-sanitizer itself (2025.3, ``--check-exit-code`` in its help). Whether it
    then ends with the status of ``--error-exitcode`` or with that of the program has not been seen: both are taken.
    """
    (tmp_path / "printed").write_text(printed + "\n")
    script = f"#!/bin/sh\ncat '{tmp_path}/printed'\necho 'CudaError: boom' >&2\nexit {status}\n"
    (tmp_path / "bin/compute-sanitizer").write_text(script)
    record = PartRecord(tmp_path / "part.json", 1, "made up")
    rows_of_tests(record, "")
    gpu_tests._sanitized(record, Deadline(60), "memcheck")
    gpu_tests._goal(record)
    [row] = record.rows("compute-sanitizer")
    assert (row["outcome"], row["note"]) == (outcome, note)
    content = read(tmp_path / "part.json")
    assert content is not None
    assert [goal["reached"] for goal in content["goals"]] == [True, False]


class _Load:
    """In place of PyTorch's products of matrices. The fake board has the same power in any case."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.slow
@on_fakes
def test_every_step_on_power_and_energy_is_taken() -> None:
    import ctypes

    library = str(fakes() / "libfairlap_fake_nvml.so")
    os.environ |= {"FAIRLAP_LIBNVML": library, "FAIRLAP_PROBE_SECONDS": "0.1"}
    control = ctypes.CDLL(library)
    control.fake_nvml_reset()
    control.fake_nvml_use_real_clock(1)
    telemetry.SteadyLoad = _Load  # type: ignore[assignment,misc]
    telemetry.CALIBRATED_S, telemetry.REST_S, telemetry.CORE_SHARE_S = 0.5, 0.4, 0.3
    telemetry.AGREEMENT, telemetry.TRIALS_OF_EACH = ((0.5, 0.05),), 1
    telemetry.ROUNDS, telemetry.SECONDS_OF_A_ROUND = 2, 0.05
    with tempfile.TemporaryDirectory() as folder:
        record = PartRecord(Path(folder) / "part.json", 5, "made up")
        telemetry.run(record, Deadline(600))
        record.end()
        content = read(Path(folder) / "part.json")
    assert content is not None
    assert not content["left_out"], content["left_out"]
    tables = content["tables"]
    assert {"sensors by NVML alone", "bursts by NVML alone", "fields by the sampler", "disturbance"} <= set(tables)
    assert all(row["joules"] is not None for row in tables["energy of a steady load"]), tables
    assert all(goal["figure"] is not None for goal in content["goals"]), content["goals"]


def rows_of_tests(record: PartRecord, *notes: str) -> None:
    for note in notes:
        record.row("tests", file="test_x.py", test="t", outcome="skipped" if note else "passed", note=note)


@pytest.mark.parametrize(
    ("note", "package"),
    [
        ("Skipped: could not import 'cupy': No module named 'cupy'", "cupy"),
        ("this JAX has no CUDA", "jax"),
        ("this PyTorch has no CUDA", "torch"),
        ("this ONNX Runtime has no CUDA provider", "onnxruntime"),
        ("torch:compile is not here", "torch"),
    ],
)
def test_a_test_that_was_skipped_for_want_of_a_package_is_a_failure(tmp_path: Path, note: str, package: str) -> None:
    record = PartRecord(tmp_path / "part.json", 1, "made up")
    rows_of_tests(record, "", note)
    with pytest.raises(NotHere) as found:
        gpu_tests._not_skipped(record, package)
    assert found.value.package == package
    others: list[Any] = [name for name in gpu_tests._PACKAGES if name != package]
    for other in others:
        gpu_tests._not_skipped(record, other)


def test_a_part_in_which_no_test_passed_is_a_failure(tmp_path: Path) -> None:
    record = PartRecord(tmp_path / "part.json", 1, "made up")
    rows_of_tests(record, "needs two GPUs")
    with pytest.raises(RuntimeError, match="not one test passed"):
        gpu_tests._goal(record)
