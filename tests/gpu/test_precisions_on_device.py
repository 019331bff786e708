"""TF32 is what a GPU computes in when it is asked for, and reads back; in fp32 it is off, as other tests show."""

from __future__ import annotations

import importlib.util

import pytest
from one_block import processes_of_one_block

pytest.importorskip("msgspec", reason="races need msgspec; `make gpu-proof` runs this where it is installed")
pytest.importorskip("scipy", reason="verdicts need SciPy; `make gpu-proof` runs this where it is installed")

from fairlap.request.work import Work

pytestmark = pytest.mark.usefixtures("frameworks")


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow:graph", "onnxruntime"])
def test_tf32_rounds_more_than_float32_and_is_in_force(name: str) -> None:
    if importlib.util.find_spec(name.partition(":")[0]) is None:
        pytest.skip(f"{name} is not here; `make gpu-proof` runs this where it is")
    work = Work("mlp", 64, precision="tf32")
    process = processes_of_one_block(name, work, threads=2, seconds=0.2, device="cuda:0")[name]
    if process.outcome == "unsupported":
        pytest.skip(process.message)  # a build without CUDA
    assert process.outcome == "finished", process.message
    assert process.in_force["precision"] == "tf32"
    assert 1e-5 < max(error.distance for error in process.errors) < 1e-2
