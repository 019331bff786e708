"""The embedded device code is assembled by NVIDIA's ptxas for every architecture that fairlap claims.

ptxas comes in packages (the dependency group `ptx`). Without it the tests fail: a driver assembles the code only on a
machine with a GPU, and only for that GPU.
"""

import re
from pathlib import Path

import pytest
from fairlap.engine import _native

from .assemblers import Assembler, find_assemblers

CLAIMED = (70, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)  # in docs/reference/limits.md too
ASSEMBLERS = find_assemblers()
CASES = [
    pytest.param(assembler, capability, id=f"CUDA-{assembler.release}-sm_{capability}")
    for assembler in ASSEMBLERS
    for capability in assembler.capabilities
    if capability >= CLAIMED[0]
]

_SAXPY = Path(__file__).parents[2] / "docs" / "examples" / "gpu" / "saxpy.ptx"

pytestmark = pytest.mark.sanitized


def entries() -> list[str]:
    return re.findall(r"\.entry (\w+)", _native.cuda_device_code())


def test_every_architecture_is_assembled_by_some_release() -> None:
    assert {12, 13} <= {assembler.release for assembler in ASSEMBLERS}, "ptxas is missing: pip install --group ptx"
    assert set(CLAIMED) <= {capability for each in ASSEMBLERS for capability in each.capabilities}


@pytest.mark.parametrize(("assembler", "capability"), CASES)
def test_the_device_code_assembles_without_spills_or_a_stack(
    assembler: Assembler, capability: int, tmp_path: Path
) -> None:
    source, out = tmp_path / "device_code.ptx", tmp_path / "device_code.cubin"
    source.write_text(_native.cuda_device_code())
    done = assembler.assemble(source, capability, out)
    assert done.returncode == 0, done.stderr
    assert out.stat().st_size > 0
    compiled = re.findall(r"Compiling entry function '(\w+)' for 'sm_(\d+)'", done.stderr)
    assert sorted(compiled) == sorted((entry, str(capability)) for entry in entries())
    properties = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert properties == [("0", "0", "0")] * len(entries())


@pytest.mark.parametrize(("assembler", "capability"), CASES)
def test_the_documentations_kernel_assembles(assembler: Assembler, capability: int, tmp_path: Path) -> None:
    done = assembler.assemble(_SAXPY, capability, tmp_path / "saxpy.cubin")
    assert done.returncode == 0, done.stderr


def test_what_does_not_assemble_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.ptx"
    wrong.write_text(_native.cuda_device_code().replace("ld.param.u64", "ld.nowhere.u64"))
    assert all(each.assemble(wrong, 90, tmp_path / "out").returncode != 0 for each in ASSEMBLERS)


def test_an_older_architecture_than_the_target_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "device_code.ptx"
    source.write_text(_native.cuda_device_code())
    older = [each for each in ASSEMBLERS if min(each.capabilities) < CLAIMED[0]]
    assert older
    assert all(each.assemble(source, min(each.capabilities), tmp_path / "out").returncode != 0 for each in older)
