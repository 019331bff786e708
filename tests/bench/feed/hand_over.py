"""From asking for a batch that is ready to the framework having it, in nanoseconds; the work on it is not counted.

``hot`` is in a tight loop. ``cold`` is after the consumer went through 8 MiB of memory, as a model does. JAX takes a
batch by its own from_dlpack, or as a NumPy view given to a compiled function; that is part of the call, so the
same call on an array that JAX already holds is subtracted.
"""

from __future__ import annotations

import ctypes
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from fairlap.engine import Batch, Feeder

ROWS, COLUMNS = 64, 256
TIMES = {"hot": 10_000, "cold": 500}
TURNS = 3
Take = Callable[[Batch], Any]

EXTRA: dict[str, Callable[[], Any]] = {}
"""What a method does in addition to the hand-over; timed after each sample and subtracted."""

now_ns = time.perf_counter_ns


class SlotViewsOfBench:
    """Views of slots as fairlap's adapters use them, for one input without a model."""

    def __init__(self, made_of: Callable[[Any], Any] = lambda view: view) -> None:
        self._made_of = made_of
        self._made: dict[int, Any] = {}

    def view(self, batch: Batch) -> Any:
        address = batch.pointer
        if address in self._made:
            return self._made[address]
        memory: Any = (ctypes.c_char * batch.nbytes).from_address(address)
        made = self._made[address] = self._made_of(np.frombuffer(memory, np.float32).reshape(batch.shape))
        return made


def native() -> dict[str, Take]:
    return {"the batch alone": lambda batch: batch}


def torch() -> dict[str, Take]:
    import torch

    torch.set_num_threads(1)
    return {
        "capsule": lambda batch: torch.utils.dlpack.from_dlpack(batch.__dlpack__()),
        "torch.from_dlpack": torch.from_dlpack,
    }


def jax() -> dict[str, Take]:
    import jax

    step = jax.jit(lambda array: array[0, 0])
    held = jax.numpy.zeros((ROWS, COLUMNS))
    slots = SlotViewsOfBench()
    into_a_call = "a view of each slot into a jitted call"
    EXTRA[into_a_call] = lambda: step(held).block_until_ready()
    return {
        into_a_call: lambda batch: step(slots.view(batch)).block_until_ready(),
        "jax.dlpack.from_dlpack": jax.dlpack.from_dlpack,
    }


def tensorflow() -> dict[str, Take]:
    import tensorflow as tf

    return {"capsule": lambda batch: tf.experimental.dlpack.from_dlpack(batch.__dlpack__())}


def onnxruntime() -> dict[str, Take]:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, COLUMNS]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", kinds[:1], kinds[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    del onnx
    fresh = session.io_binding()
    bindings: dict[int, Any] = {}

    def bound(batch: Batch) -> Any:
        binding = bindings.get(batch.pointer)
        if binding is None:
            binding = bindings[batch.pointer] = session.io_binding()
            binding.bind_input("x", "cpu", 0, np.float32, batch.shape, batch.pointer)
        return binding

    return {
        "a binding for each slot": bound,
        "bound again": lambda batch: fresh.bind_input("x", "cpu", 0, np.float32, batch.shape, batch.pointer),
    }


def openvino() -> dict[str, Take]:
    import openvino

    slots = SlotViewsOfBench(lambda view: openvino.Tensor(view, shared_memory=True))
    return {
        "a tensor for each slot": slots.view,
        "made again": lambda batch: openvino.Tensor(np.from_dlpack(batch), shared_memory=True),
    }


def median_ns(take: Take, how: str, extra: Callable[[], Any] | None) -> float:
    wiped = np.ones(8 << 20, np.uint8)
    samples = np.zeros((4096, COLUMNS), np.float32)
    taken_ns = []
    with Feeder(samples, batch=ROWS, epochs=None) as feeder:
        for _ in range(TIMES[how]):
            while feeder.stalls is None:  # gives the staging thread a core now and then
                pass
            if how == "cold":
                wiped += 1
            began_ns = now_ns()
            batch = feeder.next()
            assert batch is not None
            taken = take(batch)
            taken_ns.append(now_ns() - began_ns)
            del taken
            batch.release()
            if extra is not None:
                if how == "cold":
                    wiped += 1
                began_ns = now_ns()
                extra()
                taken_ns[-1] -= now_ns() - began_ns
    return statistics.median(taken_ns) - clock_ns()


def clock_ns() -> float:
    return statistics.median(-now_ns() + now_ns() for _ in range(1001))


def main() -> None:
    ways = {"native": native, "torch": torch, "jax": jax, "tensorflow": tensorflow}
    ways |= {"onnxruntime": onnxruntime, "openvino": openvino}
    gc.disable()
    takes = ways[sys.argv[1]]()
    turns: dict[str, dict[str, list[float]]] = {name: {how: [] for how in TIMES} for name in takes}
    for _ in range(TURNS):
        for name, take in takes.items():
            for how in TIMES:
                turns[name][how].append(median_ns(take, how, EXTRA.get(name)))
    medians = {
        name: {f"{how}_ns": statistics.median(each) for how, each in by_how.items()} for name, by_how in turns.items()
    }
    print(json.dumps(medians))


main()
