"""The commands of docs/how-to/time-gpu-kernels.md run as they are printed there, with the files of docs/examples/gpu.

Triton, CuPy, Numba and PyTorch are replaced by modules of the same names, in which every operation is a kernel on the
fake device: this shows that the commands fit the files and that the stream is found, not that a framework works so.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_line import fairlap
from cuda_on_fakes import environment_with_fakes

pytestmark = pytest.mark.sanitized

TOP = Path(__file__).parents[3]
EXAMPLES = TOP / "docs/examples/gpu"
STAND_INS = TOP / "tests/support/frameworks_on_fakes"
KERNEL_NS = 30_000  # as in the stand-ins
KERNELS = {
    "saxpy.ptx:saxpy": {"saxpy": 1},
    "triton_kernel:add": {"add_kernel": 1},
    "triton_kernel:add_by_torch": {"add": 1},
    "cupy_kernel:scale": {"scale": 1},
    "numba_kernel:square": {"square_kernel": 1},
    "torch_operators:by_addmm": {"addmm": 1},
    "torch_operators:by_two_calls": {"mm": 1, "add": 1},
    "torch_operators:on_side_stream": {"addmm": 1},
}
"""Of one call."""


def commands() -> list[str]:
    page = (TOP / "docs/how-to/time-gpu-kernels.md").read_text()
    found = re.findall(r"^fairlap (time .*)$", page, re.MULTILINE)
    return [command for command in found if "my_kernels" not in command]


def test_every_callable_of_the_examples_is_timed_by_a_command() -> None:
    timed = {name for command in commands() for name in shlex.split(command) if name in KERNELS}
    assert timed == set(KERNELS)
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == {
        name.partition(":")[0] if ".ptx" in name else f"{name.partition(':')[0]}.py" for name in KERNELS
    }


@pytest.mark.slow_but("triton", "saxpy")
@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_documentation_names_the_kernels_that_it_timed(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "gpu"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    fakes = environment_with_fakes()
    arguments = shlex.split(command)
    names = [name for name in arguments if name in KERNELS]
    short = ("--blocks", "6", "--seconds", "5ms") if len(names) > 1 else ("--samples", "20", "--calls", "1")
    done = fairlap(
        *arguments,
        *short,
        "--json",
        cwd=folder,
        FAIRLAP_LIBCUDA=fakes["FAIRLAP_LIBCUDA"],
        FAIRLAP_LIBCUPTI=fakes["FAIRLAP_LIBCUPTI"],
        PYTHONPATH=os.pathsep.join(filter(None, [str(STAND_INS), os.environ.get("PYTHONPATH", "")])),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    of = document["kernels_by_callable"] if len(names) > 1 else {names[0]: document}
    for name in names:
        assert of[name]["kernels_absent"] == ""
        assert {kernel: each["per_call"] for kernel, each in of[name]["kernels"].items()} == KERNELS[name]
    if len(names) == 1 and ".ptx" not in names[0]:
        assert document["quantities"]["device_span_ns"]["p50_ns"] == pytest.approx(KERNEL_NS, rel=0.01)
