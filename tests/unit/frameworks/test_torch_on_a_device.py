"""What PyTorch's adapter does for a GPU that a machine without one can show: graphs, and settings of its libraries.

``torch.cuda`` is replaced by what PyTorch's notes on CUDA graphs promise: work before a capture is on another stream
than the current one, a capture computes nothing, and a replay writes to the tensors that the capture returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.frameworks.adapter_parts.devices.torch_graphs import GraphedCalls
from fairlap.frameworks.adapter_parts.torch_settings import libraries_in_force, modes_of_a_thread
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.libraries import torch as adapter
from fairlap.frameworks.registry import framework_named
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
pytestmark = pytest.mark.sanitized


def test_a_thread_that_serves_uses_the_device_of_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's current device is kept for each thread (its notes on CUDA semantics)."""
    used: list[int] = []

    @contextmanager
    def device(number: int) -> Iterator[None]:
        used.append(number)
        yield

    monkeypatch.setattr(torch.cuda, "device", device)
    work: Any = SimpleNamespace(mode="infer", precision="fp32")
    for wanted, found in (("cpu", []), ("cuda:1", [1])):
        with modes_of_a_thread(work, wanted):
            assert used == found
            assert torch.is_inference_mode_enabled()


class Stream:
    def __init__(self) -> None:
        self.waited_for: list[Stream] = []

    def wait_stream(self, other: Stream) -> None:
        self.waited_for.append(other)


class Cuda:
    """The part of ``torch.cuda`` that captures."""

    def __init__(self) -> None:
        self.main = Stream()
        self.streams = [self.main]
        self.capturing: CudaGraph | None = None
        self.pools: list[object] = []
        self.ran_on_main = self.warm_ups = 0

    def in_place(self, patch: pytest.MonkeyPatch) -> Cuda:
        for name in ("Stream", "stream", "graph", "current_stream"):
            patch.setattr(torch.cuda, name, {"Stream": Stream}.get(name) or getattr(self, name))
        patch.setattr(torch.cuda, "CUDAGraph", lambda: CudaGraph(self))
        return self

    def current_stream(self) -> Stream:
        return self.streams[-1]

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        self.streams.append(stream)
        yield
        self.streams.pop()

    @contextmanager
    def graph(self, cuda_graph: CudaGraph, pool: object = None, stream: Stream | None = None) -> Iterator[None]:
        assert self.warm_ups > 0, "a capture without a warm-up may capture what initialises a library"
        self.pools.append(pool)
        self.capturing = cuda_graph
        yield
        self.capturing = None

    def work(self, compute: Callable[[], Any]) -> Any:
        """Compute, or capture what would be computed, into tensors of its own."""
        if self.capturing is None:
            self.warm_ups += 1
            self.ran_on_main += self.current_stream() is self.main
            return compute()
        into = torch.empty_like(compute())
        into.fill_(float("nan"))
        self.capturing.captured = lambda: into.copy_(compute())
        return into


class CudaGraph:
    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self.captured: Callable[[], object] | None = None

    def pool(self) -> object:
        return "pool"

    def replay(self) -> None:
        assert self.captured is not None
        self.captured()


def test_each_binding_is_a_graph_of_its_own_inputs_in_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda().in_place(monkeypatch)

    def bind(inputs: Any, _types: Any) -> Callable[[], Any]:
        x = torch.from_numpy(inputs["x"])
        return lambda: cuda.work(lambda: x * 2)

    graphed = GraphedCalls(bind)
    calls = [graphed({"x": np.full(3, value, np.float32)}) for value in (1, 5)]
    assert cuda.ran_on_main == 0
    assert cuda.pools == [None, "pool"]
    assert [call().tolist() for call in (*calls, calls[0])] == [[2.0] * 3, [10.0] * 3, [2.0] * 3]
    assert cuda.main.waited_for  # of the stream that warmed up
    assert calls[0]() is calls[0]()


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_graphs_are_for_a_gpu(mode: Any) -> None:
    work = materials_for(Work("mlp", 2), 0).workload("inputs")
    object.__setattr__(work, "mode", mode)
    with pytest.raises(Unsupported, match="--device cuda"):
        framework_named("torch")().prepare(work, Settings(1, "graph"), lambda _: nullcontext())


@pytest.mark.parametrize("mode", ["infer", "grad", "train"])
def test_every_mode_reads_what_the_allocator_of_the_gpu_counts(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``torch.cuda`` counts by device and not by what is computed (PyTorch's notes on memory management)."""
    fields = {"memory_bytes": lambda: {"live_peak": 1}, "forget_memory_peak": lambda: None}
    monkeypatch.setattr(adapter, "on_device", lambda _device: fields)
    training = Training(Sgd(lr=0.01)) if mode == "train" else None
    work = materials_for(Work("mlp", 2, mode, training=training), 0).workload("inputs")
    prepared = framework_named("torch")().prepare(work, Settings(1), lambda _: nullcontext())
    assert {name: getattr(prepared, name) for name in fields} == fields


def test_settings_of_cudnn_and_cublas_are_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = libraries_in_force()
    assert (before["cudnn_benchmark"], before["cublas_workspace"]) == ("off", "default")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=True):
        found = libraries_in_force()
    assert (found["cudnn_benchmark"], found["cudnn_deterministic"]) == ("on", "on")
    assert found["cublas_workspace"] == ":4096:8"
    assert {found["fp16_reduction"], found["bf16_reduction"]} <= {"on", "off"}
