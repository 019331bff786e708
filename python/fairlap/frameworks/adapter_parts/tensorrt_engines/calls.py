"""Calls of a TensorRT engine: one execution context, inputs in memory of the device, and one stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fairlap.engine import _native
from fairlap.engine.cuda.device_arrays import DeviceArrays
from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.adapter_parts.precisions.narrow_arrays import narrowed, narrowed_type, widened
from fairlap.frameworks.adapter_parts.tensorrt_engines.building import BuiltEngine
from fairlap.frameworks.contract import Unsupported
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload


class EngineCalls:
    """All calls write to the same outputs and share the context, which gets its inputs when they change."""

    def __init__(self, trt: Any, built: BuiltEngine, work: Workload, stream: _native.OwnStream, device: int) -> None:
        self._work, self._stream, self._built = work, stream, built
        self._memory = DeviceArrays(device)
        self._context = built.engine.create_execution_context()
        if self._context is None:
            raise Unsupported("tensorrt has no memory for the activations of its engine")
        self._context.nvtx_verbosity = trt.ProfilingVerbosity.NONE  # ranges of each layer would cost time in each call
        _require_tensors(built.engine, work)
        self._types = {each.name: narrowed_type(work.precision, each.dtype) for each in work.spec.outputs}
        self._outputs = {
            each.name: self._memory.room(self._types[each.name].itemsize * math.prod(each.sized(work.batch)))
            for each in work.spec.outputs
        }
        for name, pages in self._outputs.items():
            self._set_address(name, pages.address)
        self._set_inputs: object = None  # those of the call before

    def bind(self, inputs: Arrays) -> Callable[[], Any]:
        held = {name: self._memory.holding(narrowed(self._work.precision, array)) for name, array in inputs.items()}
        addresses = [(name, pages.address) for name, pages in held.items()]
        execute, stream = self._context.execute_async_v3, self._stream.address

        def call() -> None:
            if self._set_inputs is not held:
                for name, address in addresses:
                    self._set_address(name, address)
                self._set_inputs = held
            if not execute(stream):
                raise RuntimeError("TensorRT did not enqueue the call")

        return call

    def outputs(self, _result: Any) -> Answers:
        found = []
        for tensor in self._work.spec.outputs:
            shape = tensor.sized(self._work.batch)
            raw = self._memory.read(self._outputs[tensor.name], shape, self._types[tensor.name])
            found.append(widened(self._work.precision, tensor.dtype, raw))
        return named_outputs(self._work.spec, found)

    def _set_address(self, name: str, address: int) -> None:
        if not self._context.set_tensor_address(name, address):
            raise RuntimeError(f"TensorRT refuses the address of {name}")


def _require_tensors(engine: Any, work: Workload) -> None:
    """Compare names, shapes and sizes of elements with the model's: memory is handed over by its address alone."""
    known = {engine.get_tensor_name(number) for number in range(engine.num_io_tensors)}
    for tensor in (*work.spec.inputs, *work.spec.outputs):
        shape, size = tensor.sized(work.batch), narrowed_type(work.precision, tensor.dtype).itemsize
        if tensor.name not in known:
            raise Unsupported(f"the engine of tensorrt has no {tensor.name}; it has {', '.join(sorted(known))}")
        found = tuple(engine.get_tensor_shape(tensor.name)), int(engine.get_tensor_dtype(tensor.name).itemsize)
        if found != (tuple(shape), size):
            raise Unsupported(
                f"{tensor.name} of tensorrt's engine has shape {found[0]} and {found[1]} bytes an element, not "
                f"{tuple(shape)} and {size}"
            )
