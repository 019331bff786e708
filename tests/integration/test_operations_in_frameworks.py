"""Every framework computes operations of every kind as the float64 reference does, and in a race of them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.models.registry import find
from thorough import thorough_where

pytestmark = pytest.mark.timeout(300)

PROGRAM = Path(__file__).with_name("operations_in_a_process.py")
FRAMEWORKS = ("torch", "jax", "tensorflow", "onnxruntime", "openvino")
NAMES = (
    "gemm-m5-n3-k7",
    "gemm-m5-n3-k7-at",
    "gemm-m5-n3-k7-bt",
    "gemm-m5-n3-k7-at-bt",
    "conv-n2-c3-w9-h7-k4-f3x2-p1x0-s2x1",
    "conv-n1-c1-w5-h5-k2-f1x1-p3x3-s2x2",
    "rnn-h5-b2-t4",
    "lstm-h5-b2-t4",
    "gru-h5-b2-t4",
    "embedding-r9-d4-n6",
)
LARGEST_ERROR = 1e-5  # of elements of order one


def require(name: str) -> None:
    if not is_importable(framework_named(name)):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")


@pytest.mark.slow_but("onnxruntime")
@pytest.mark.parametrize("name", thorough_where(lambda name: name in ("jax", "tensorflow"), FRAMEWORKS))
def test_a_framework_agrees_with_the_reference_on_every_kind(name: str) -> None:
    require(name)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, str(PROGRAM), name, *NAMES], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    assert set(found) == set(NAMES)
    assert [operation for operation, each in found.items() if not (each["shape"] and each["weights"])] == []
    assert [operation for operation, each in found.items() if not each["error"] < LARGEST_ERROR] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("gemm", "conv"))])
def test_operations_are_those_that_torch_counts(name: str) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    from torch.utils.flop_counter import FlopCounterMode

    found = find(name)
    model = found_implementation(found.package).build(ones(found.spec.weights))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*[torch.ones(tensor.sized(1)) for tensor in found.spec.inputs])
    assert found.spec.gmacs_per_item is not None
    assert counter.get_total_flops() == pytest.approx(2e9 * found.spec.gmacs_per_item)


def found_implementation(package: str) -> Any:
    from fairlap.models.registry import implementation_at

    return implementation_at(package, "torch")


def ones(weights: Any) -> dict[str, Any]:
    import numpy as np

    return {weight.name: np.ones(weight.shape, np.float32) for weight in weights}


@pytest.mark.thorough
def test_a_race_of_operations_has_a_row_for_each_contestant_on_each(tmp_path: Path) -> None:
    for name in ("torch", "onnxruntime"):
        require(name)
    file = tmp_path / "run.json"
    asked = ["compare", "rnn-h8-b1-t6", "gemm-m8-n1-k8", "embedding-r9-d4-n6", "--on", "torch,onnxruntime"]
    limits = ["--threads", "1", "--blocks", "1", "--seconds", "50ms", "--no-store", "--quiet", "-o", str(file)]
    environment = {**os.environ, "FAIRLAP_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "fairlap", *asked, *limits], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert sorted((row["workload"], row["contestant"]) for row in rows) == sorted(
        (model, contestant) for model in asked[1:4] for contestant in ("torch", "onnxruntime")
    )
    assert {row["outcome"] for row in rows} == {"finished"}
    assert all(math.isfinite(row["error_relative"]) for row in rows)


@pytest.mark.thorough
def test_a_framework_without_a_way_to_do_an_operation_is_named_with_the_reason(tmp_path: Path) -> None:
    for name in ("torch", "litert"):
        require(name)
    file = tmp_path / "run.json"
    asked = ["compare", "lstm-h5-b1-t4", "--on", "torch,litert", "--threads", "1", "--blocks", "1", "--seconds", "50ms"]
    environment = {**os.environ, "FAIRLAP_CACHE": str(tmp_path / "cache")}
    subprocess.run(
        [sys.executable, "-m", "fairlap", *asked, "--no-store", "--quiet", "-o", str(file)], env=environment, check=True
    )
    outcomes = {row["contestant"]: row["outcome"] for row in json.loads(file.read_text())["rows"]}
    assert outcomes == {"torch": "finished", "litert": "unsupported"}
