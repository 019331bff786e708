"""Every framework does scientific operations and operations on which digits are lost, in itself and in a race."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.request.work import Work
from fairlap.scenarios.digits.scenario import Digits
from one_block import processes_of_one_block
from thorough import thorough_where

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).with_name("science_in_a_process.py")
NAMES = (
    *("solve-n64-r3", "qr-m96-n32", "svd-m48-n32", "eigh-n48", "cholesky-n64", "fft-n1000-b3", "fft2-h24-w20-b2"),
    *("fft3-d8-h12-w10", "spmv-n512-z8", "random-uniform-n100000", "random-normal-n100000", "sort-r3-n1000"),
    "segment-sum-n5000-d4-s50",
)


def require(*names: str) -> None:
    for name in names:
        if not is_importable(framework_named(name)):
            pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")


@pytest.mark.parametrize("name", thorough_where(lambda name: name != "torch", ("torch", "jax", "tensorflow")))
def test_a_framework_does_every_scientific_operation(name: str) -> None:
    require(name)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, str(PROGRAM), name, *NAMES], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    assert set(found) == set(NAMES)
    assert {operation: why for operation, errors in found.items() for why in errors.values() if why} == {}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["svd-m48-n32", "spmv-n512-z8", "random-normal-n100000", "fft-n1000-b3"])
def test_scientific_operations_race(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require("torch", "jax")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    processes = processes_of_one_block("torch,jax,onnxruntime", Work(name, 1), seconds=0.05)
    outcomes = {contestant: process.outcome for contestant, process in processes.items()}
    assert outcomes == {"torch": "finished", "jax": "finished", "onnxruntime": "unsupported"}


@pytest.mark.thorough
def test_a_library_that_keeps_fewer_digits_is_shown_with_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``jax.nn.standardize`` subtracts the square of the mean from the mean of squares."""
    require("torch", "jax")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    processes = processes_of_one_block("torch,jax", Work("hard-layernorm-r64-n1024-o1000", 1), seconds=0.05)
    read = next(figure.read for figure in Digits.figures if figure.name == "digits_kept")
    kept = {contestant: read(process) for contestant, process in processes.items()}
    assert {process.outcome for process in processes.values()} == {"finished"}
    assert kept["torch"] is not None
    assert kept["jax"] is not None
    assert kept["torch"] > kept["jax"] + 1
