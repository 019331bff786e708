"""Kernels that no device has run yet: a process of their own tries them first, and what it meets stays there."""

from __future__ import annotations

import tempfile

import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.machine.hardware import device_roofs
from fairlap.machine.hardware.device_roofs import NUMBER_TYPES, measured_on_device, roofs_of_device
from trial_processes import trial_processes, unproven

BF16 = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
ILLEGAL_ADDRESS, ILLEGAL_INSTRUCTION = 700, 715
PLANTS = {
    "os.kill(os.getpid(), signal.SIGSEGV)": "SIGSEGV",
    f"cuda.fake_cuda_fail(b'cuLaunchKernel', 1, {ILLEGAL_INSTRUCTION})": f"error {ILLEGAL_INSTRUCTION}",
    f"cuda.fake_cuda_poison({ILLEGAL_ADDRESS})": "ILLEGAL_ADDRESS",
    f"cuda.fake_cuda_set_wrong_sums(b'{BF16}')": str(132 * 2 * 128 * 128),  # blocks, threads and sums of each
    "sys.exit(3)": "status 3",
}


@on_fakes
def test_a_type_whose_trial_fails_is_absent_with_the_reason_and_all_others_are_measured() -> None:
    for plant, reason in PLANTS.items():
        machine = Machine()
        with unproven("bf16", "fp8"), trial_processes(plants={"bf16": plant}) as log:
            found = measured_on_device("cuda:0", seconds=0.01)
            assert log.read_text().splitlines() == ["--trial-of bf16", "--trial-of fp8"]
        assert found.absent.keys() == {"bf16", "fp4"}
        assert reason in found.absent["bf16"]
        assert "\n" not in found.absent["bf16"]
        assert "context" not in found.absent["bf16"]
        assert found.operations_per_s.keys() == set(NUMBER_TYPES) - {"bf16", "fp4"}
        assert found.bytes_per_s.keys() == {"L2", "memory"}
        assert machine.outstanding() == 0


@on_fakes
def test_a_trial_that_hangs_is_ended_and_its_type_is_absent() -> None:
    machine = Machine()
    with unproven("bf16"), trial_processes(plants={"bf16": "time.sleep(600)"}), pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_roofs, "_LONGEST_TRIAL_S", 0.5)
        found = measured_on_device("cuda:0", seconds=0.01)
    assert found.absent.keys() == {"bf16", "fp4"}
    assert "0.5" in found.absent["bf16"]
    assert found.operations_per_s.keys() == set(NUMBER_TYPES) - {"bf16", "fp4"}
    assert machine.outstanding() == 0


@on_fakes
def test_a_trial_comes_before_this_process_starts_the_device() -> None:
    """A device in exclusive mode has one process at a time."""
    machine = Machine()
    retained: list[int] = []
    run = device_roofs._output_of

    def count_first(*options: str, longest_s: float) -> str:
        retained.append(machine.cuda.fake_cuda_call_count(b"cuDevicePrimaryCtxRetain"))
        return run(*options, longest_s=longest_s)

    with unproven("bf16", "int8"), trial_processes(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_roofs, "_output_of", count_first)
        before = machine.cuda.fake_cuda_call_count(b"cuDevicePrimaryCtxRetain")
        found = measured_on_device("cuda:0", seconds=0.01)
    assert retained == [before, before]
    assert machine.cuda.fake_cuda_call_count(b"cuDevicePrimaryCtxRetain") > before
    assert found.absent.keys() == {"fp4"}


@on_fakes
def test_types_that_devices_have_run_need_no_process_and_keep_their_file() -> None:
    Machine()
    with trial_processes() as log:
        measured_on_device("cuda:0", seconds=0.01)
        assert log.read_text() == ""
    name = device_roofs._file_of("cuda:0").name
    with unproven():
        assert device_roofs._file_of("cuda:0").name == name
    with unproven("bf16"):
        assert device_roofs._file_of("cuda:0").name != name


@on_fakes
def test_the_reason_of_a_trial_is_kept_with_the_roofs() -> None:
    Machine()
    plants = {"bf16": "sys.exit('no such unit')"}
    with tempfile.TemporaryDirectory() as folder, unproven("bf16"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", f"{folder}/given")
        patch.setenv("XDG_CACHE_HOME", f"{folder}/user")
        with trial_processes(plants=plants):
            measured = measured_on_device("cuda:0", seconds=0.01)
        patch.setattr(device_roofs, "_measured_apart", lambda *_: measured)
        assert "no such unit" in roofs_of_device("cuda:0").absent["bf16"]
        patch.setattr(device_roofs, "_measured_apart", None)
        assert "no such unit" in roofs_of_device("cuda:0").absent["bf16"]
