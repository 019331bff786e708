"""Inputs and outputs of ONNX Runtime's sessions on the CPU: in a feeder's slots, and of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload


def runner_on_slots(work: Workload, session: Any, held: Mapping[str, Any]) -> Callable[[Mapping[str, int]], None]:
    """Run the session on a feeder's slots: they are few, so each address is bound once.

    The caller keeps the batch alive.
    """
    bindings: dict[tuple[int, ...], Any] = {}

    def bound_to(addresses: Mapping[str, int]) -> Any:
        binding = session.io_binding()
        for tensor in work.spec.inputs:
            kind, shape = np.dtype(tensor.dtype).type, tensor.sized(work.batch)
            binding.bind_input(tensor.name, "cpu", 0, kind, shape, addresses[tensor.name])
        for name, value in held.items():
            binding.bind_ortvalue_output(name, value)
        return binding

    def run(addresses: Mapping[str, int]) -> None:
        key = tuple(addresses.values())
        binding = bindings.get(key)
        if binding is None:
            binding = bindings[key] = bound_to(addresses)
        session.run_with_iobinding(binding)

    return run


def bind_any_size(work: Workload, session: Any, inputs: Arrays) -> Callable[[], Any]:
    """Of a graph with open sizes. ONNX Runtime takes the memory of the outputs from its arena at each call."""
    import onnxruntime

    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for tensor in work.spec.outputs:
        binding.bind_output(tensor.name)

    def call() -> Any:
        session.run_with_iobinding(binding)
        return binding

    return call


def answers_in(work: Workload, binding: Any) -> Answers:
    return named_outputs(work.spec, [value.numpy().copy() for value in binding.get_outputs()])
