"""These tests need a real NVIDIA GPU; elsewhere each is skipped with the reason.

With FAIRLAP_GPU_REHEARSAL set they run on the fake driver, except for those that need a framework.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fairlap.engine import _native

# JAX would take three quarters of the device's memory from the other frameworks in this process.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

_HERE = Path(__file__).parent
_REHEARSAL = "FAIRLAP_GPU_REHEARSAL"


def _no_gpu_because() -> str:
    if os.environ.get("FAIRLAP_LIBCUDA") and not os.environ.get(_REHEARSAL):
        return "FAIRLAP_LIBCUDA is set, so this would not be the real driver"
    if absent := _native.cuda_absent_because():
        return absent
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _no_gpu_because()
    for item in items:
        if _HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.gpu)
        if reason:
            item.add_marker(pytest.mark.skip(reason=f"no NVIDIA GPU here: {reason}"))


@pytest.fixture(scope="session")
def frameworks() -> None:
    """For tests that start frameworks in separate processes."""
    if os.environ.get(_REHEARSAL):
        pytest.skip("a rehearsal on fakes has no framework; `make gpu-proof` runs it on a GPU")


@pytest.fixture(scope="session")
def torch(frameworks: None) -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    module.zeros(1, device="cuda")  # starts the device: a timer does not
    return module


@pytest.fixture(scope="session")
def cupy(torch: Any) -> Any:
    return pytest.importorskip("cupy")


@pytest.fixture(scope="session")
def jax(torch: Any) -> Any:
    module = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in module.devices()):
        pytest.skip("this JAX has no CUDA")
    return module


@pytest.fixture
def stream(torch: Any) -> Iterator[Any]:
    """Make a side stream of PyTorch's current for the length of the test."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        yield side
    torch.cuda.synchronize()


@pytest.fixture
def context() -> Iterator[Any]:
    """Make the device's primary context current for the length of the test, with or without a framework."""
    from .proof.driver import PrimaryContext

    made = PrimaryContext()
    yield made
    made.synchronize()
    made.close()


@pytest.fixture
def own_stream(context: Any) -> Any:
    return context.new_own_stream()


@pytest.fixture
def spinner(context: Any) -> Iterator[Any]:
    from .proof.driver import Spinner

    made = Spinner()
    yield made
    context.synchronize()
    made.close()
