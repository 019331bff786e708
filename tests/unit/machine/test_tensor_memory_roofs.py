"""The roofs of devices whose matrix units keep their sums in tensor memory, as the fake driver plays them."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.engine.cuda.roofs import is_unproven
from fairlap.machine.hardware.device_roofs import NUMBER_TYPES, measured_on_device
from trial_processes import trial_processes

KIND = "tcgen05.mma.cta_group::1.kind::"
BY_WARPS = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"  # 8,192 operations of 32 threads
OPERATIONS = {  # of one instruction
    f"{KIND}tf32": 2 * 128 * 256 * 8,
    f"{KIND}f16": 2 * 128 * 256 * 16,
    f"{KIND}f8f6f4": 2 * 128 * 256 * 32,
    f"{KIND}i8": 2 * 128 * 256 * 32,
    f"{KIND}mxf4nvf4.block_scale.scale_vec::4X": 2 * 128 * 256 * 64,
    f"{KIND}mxf4nvf4.block_scale.block16": 2 * 128 * 256 * 96,
    BY_WARPS: 2 * 16 * 8 * 32 / 32,
}
RATES = {operation: 1e9 * (place + 1) for place, operation in enumerate(OPERATIONS)}
IN_TENSOR_MEMORY = {
    "tf32": f"{KIND}tf32",
    "fp16": f"{KIND}f16",
    "bf16": f"{KIND}f16",
    "fp8": f"{KIND}f8f6f4",
    "fp4": f"{KIND}mxf4nvf4.block_scale.scale_vec::4X",
    "int8": f"{KIND}i8",
}
FASTEST = {
    100: IN_TENSOR_MEMORY,
    103: IN_TENSOR_MEMORY | {"fp4": f"{KIND}mxf4nvf4.block_scale.block16", "int8": BY_WARPS},
    110: IN_TENSOR_MEMORY,
}


def machine_of(capability: int) -> Machine:
    machine = Machine()
    machine.cuda.fake_cuda_set_instruction_rate.argtypes = (ctypes.c_char_p, ctypes.c_double)
    for attribute, value in ((75, capability // 10), (76, capability % 10)):
        machine.cuda.fake_cuda_set_device_attribute(0, attribute, value)
    for operation, rate in RATES.items():
        machine.cuda.fake_cuda_set_instruction_rate(operation.encode(), rate)
    return machine


@on_fakes
def test_each_type_has_the_planted_speed_as_its_roof_and_was_tried_apart() -> None:
    for capability, fastest in FASTEST.items():
        machine = machine_of(capability)
        with trial_processes(capability) as log:
            found = measured_on_device("cuda:0", seconds=0.02)
            tried = [line.removeprefix("--trial-of ") for line in log.read_text().splitlines()]
        assert found.operations_per_s.keys() == set(NUMBER_TYPES)
        assert not found.absent
        for name, operation in fastest.items():
            expected = RATES[operation] * OPERATIONS[operation]
            assert found.operations_per_s[name].value == pytest.approx(expected, rel=1e-4), (capability, name)
        by_threads = {name for name, operation in fastest.items() if operation.startswith(KIND)}
        assert tried == [name for name in NUMBER_TYPES if name in by_threads]
        assert machine.outstanding() == 0


@on_fakes
def test_a_type_whose_sums_are_wrong_there_is_absent_with_their_number() -> None:
    machine_of(103)
    wrong = f"cuda.fake_cuda_set_wrong_sums(b'{KIND}mxf4nvf4.block_scale.block16')"
    with trial_processes(103, {"fp4": wrong}):
        found = measured_on_device("cuda:0", seconds=0.01)
    assert found.absent.keys() == {"fp4"}
    assert str(132 * 128 * 256) in found.absent["fp4"]  # blocks, lanes and columns
    assert found.operations_per_s.keys() == set(NUMBER_TYPES) - {"fp4"}


@on_fakes
def test_a_driver_that_cannot_assemble_them_is_the_reason_and_no_process_tries_it() -> None:
    """Code for sm_100a came with PTX 8.6, its fp4 with 8.7, sm_103a with 8.8 and sm_110a with 9.0.

    These versions came with CUDA 12.7, 12.8, 12.9 and 13.0 (PTX ISA, release history).
    """
    for capability, name, version, can in (
        (100, "bf16", 12_060, False),
        (100, "bf16", 12_070, True),
        (100, "fp4", 12_070, False),
        (100, "fp4", 12_080, True),
        (103, "fp8", 12_080, False),
        (103, "fp8", 12_090, True),
        (110, "tf32", 12_090, False),
        (110, "tf32", 13_000, True),
    ):
        facts = SimpleNamespace(capability=capability, driver_cuda_version=version)
        assert is_unproven(name, facts) is can  # type: ignore[arg-type]
    machine_of(110)
    facts = SimpleNamespace(capability=110, driver_cuda_version=12_090, cache_bytes=50 * 2**20, name="a device")
    with trial_processes(110) as log, pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlap.engine.cuda.roofs.device_facts", lambda _: facts)
        patch.setattr("fairlap.machine.hardware.device_roofs.device_facts", lambda _: facts)
        found = measured_on_device("cuda:0", seconds=0.01)
        assert log.read_text() == ""
    assert found.absent.keys() == IN_TENSOR_MEMORY.keys()
    assert all("13.0" in why for why in found.absent.values())
