"""The device code of the roofs, as NVIDIA's ptxas assembles it for its devices.

And that a round computes as much as the engine counts.

The kernels are written by a program and not by a compiler, so nothing but an assembler has looked at them.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from fairlap.engine import _native

from .assemblers import Assembler, find_assemblers
from .test_device_code import CLAIMED

pytestmark = pytest.mark.sanitized

ASSEMBLERS = find_assemblers()
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")
# Of products on tensor memory, which have their shape in a descriptor: test_tensor_memory_code.py reads it.
_DEPTHS = {"kind::tf32": 8, "kind::f16": 16, "kind::f8f6f4": 32, "kind::i8": 32, "scale_vec::4X": 64, "block16": 96}
_KINDS = {"tf32": "tf32", "fp16": "f16", "bf16": "f16", "fp8": "f8f6f4", "int8": "i8", "fp4": "mxf4nvf4"}


@dataclass(frozen=True)
class Kernel:
    number_type: str
    instructions: str
    least: int
    most: int
    operations: float
    threads: int
    code: str
    check: str
    sums: int

    @property
    def id(self) -> str:
        return f"{self.number_type}-{self.instructions.replace(' ', '')}-from-{self.least}"

    @property
    def target(self) -> str:
        target = re.search(r"^\.target sm_(\w+)$", self.code, re.MULTILINE)
        return "" if target is None else target[1]

    @property
    def uses_tensor_memory(self) -> bool:
        return "tcgen05.mma." in self.code

    def capabilities(self, assembler: Assembler) -> list[int | str]:
        """Of the devices that it is for and this assembler knows, the first and the last."""
        if self.target.endswith("a"):
            return [self.target] if int(self.target[:-1]) in assembler.capabilities else []
        found: list[int | str] = [
            each for each in assembler.capabilities if each in CLAIMED and self.least <= each <= self.most
        ]
        return [*found[:1], *found[1:][-1:]]


KERNELS = [Kernel(*row) for row in _native.device_roof_kernels()]
CASES = [
    pytest.param(kernel, assembler, capability, id=f"{kernel.id}-CUDA-{assembler.release}-sm_{capability}")
    for kernel in KERNELS
    for assembler in ASSEMBLERS
    for capability in kernel.capabilities(assembler)
]


def round_of(kernel: Kernel) -> list[str]:
    """List the operations between the label and the branch back to it."""
    body = re.search(r"\nROUND:\n(.*?)bra ROUND", kernel.code, re.DOTALL)
    assert body is not None
    return [line.split()[0] for line in body[1].splitlines() if line.strip()]


def operations_of(operation: str) -> float:
    """Of one instruction of a thread, by its name alone; one thread of 128 issues those on tensor memory."""
    if operation.startswith("tcgen05.mma."):
        return 2.0 * 128 * 256 * _DEPTHS[operation.rpartition(".")[2]] / 128
    if operation.startswith("fma."):
        return 4.0 if operation.endswith("x2") else 2.0
    shape = _SHAPE.search(operation)
    if shape is None:
        return 0.0
    m, n, k = map(int, shape.groups())
    groups = 4 if operation.startswith("mma.") and ".m8n8k4." in operation and ".f16." in operation else 1  # of a warp
    return groups * 2.0 * m * n * k / (128 if operation.startswith("wgmma") else 32)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.id)
def test_a_round_computes_as_much_as_the_engine_counts(kernel: Kernel) -> None:
    counted = kernel.threads * sum(map(operations_of, round_of(kernel)))
    assert counted == kernel.operations > 0


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.id)
def test_the_operations_are_those_of_its_number_type(kernel: Kernel) -> None:
    names = {"fp32": "f32", "fp64": "f64", "tf32": "tf32", "fp16": "f16", "bf16": "bf16", "int8": "s8", "fp8": "e4m3"}
    names["fp4"] = "e2m1"
    words = {word for operation in round_of(kernel) for word in operation.split(".")}
    if kernel.uses_tensor_memory:
        assert {word for word in words if word.startswith("kind::")} == {f"kind::{_KINDS[kernel.number_type]}"}
        return
    assert {names[kernel.number_type], f"{names[kernel.number_type]}x2"} & words
    assert not words & {name for name in names.values() if name not in ("f32", names[kernel.number_type])}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.id)
def test_a_check_repeats_the_same_instructions_and_compares_every_sum(kernel: Kernel) -> None:
    of_check = re.search(r"\nROUND:\n(.*?)bra ROUND", kernel.check, re.DOTALL)
    of_speed = re.search(r"\nROUND:\n(.*?)bra ROUND", kernel.code, re.DOTALL)
    assert of_check is not None
    assert of_speed is not None
    assert of_check[1] == of_speed[1]
    assert kernel.check.count("add.u32 %wrong, %wrong, 1;") == kernel.sums
    assert f"red.global.add.u32 [%out+4], {kernel.sums};" in kernel.check
    compared = {int(number) for number in re.findall(r"mov\.b\d\d (?:%word|\{%low, %word\}), %sum(\d+);", kernel.check)}
    assert compared == set(range(kernel.sums))


@pytest.mark.slow_but("12-sm_70", "13-sm_7", "13-sm_8", "13-sm_9", "13-sm_10", "13-sm_110", "13-sm_120")
@pytest.mark.parametrize("purpose", ["code", "check"])
@pytest.mark.parametrize(("kernel", "assembler", "capability"), CASES)
def test_it_assembles_for_its_devices_without_spills_or_a_stack(
    kernel: Kernel, assembler: Assembler, capability: int | str, purpose: str, tmp_path: Path
) -> None:
    source = tmp_path / "roof.ptx"
    source.write_text(getattr(kernel, purpose))
    done = assembler.assemble(source, capability, tmp_path / "roof.cubin")
    assert done.returncode == 0, done.stderr
    properties = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert properties == [("0", "0", "0")]
    registers = int(re.findall(r"Used (\d+) registers", done.stderr)[0])
    assert registers * kernel.threads <= 65_536, "not one block fits onto a multiprocessor"
    assert "serialized" not in done.stderr, "steps of a warpgroup would wait for each other"


def test_every_kernel_is_assembled_for_some_device() -> None:
    assert {case.values[0] for case in CASES} == set(KERNELS)


@pytest.mark.parametrize("assembler", ASSEMBLERS, ids=lambda each: f"CUDA-{each.release}")
def test_the_triad_assembles_for_every_device(assembler: Assembler, tmp_path: Path) -> None:
    source = tmp_path / "triad.ptx"
    source.write_text(_native.device_triad_code())
    for capability in (each for each in assembler.capabilities if each in CLAIMED):
        done = assembler.assemble(source, capability, tmp_path / "triad.cubin")
        assert done.returncode == 0, done.stderr
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in done.stderr
