"""Inputs and outputs of ONNX Runtime's sessions in the memory and the type in which they compute.

NumPy has no bfloat16, so such arrays are handed over as the bits that they consist of, by their address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy.typing as npt

from fairlap.frameworks.adapter_parts.precisions.narrow_arrays import (
    is_bfloat16,
    narrowed,
    narrowed_type,
    widened,
)
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Tensor
from fairlap.models.workload import Workload
from fairlap.request.work import Precision

_BFLOAT16 = 16  # of ONNX's TensorProto.DataType


@dataclass(frozen=True)
class SessionMemory:
    """Memory of a kind of device, ``cpu`` or ``cuda``, and the type that float32 arrays have in it."""

    kind: str
    number: int
    precision: Precision

    def outputs(self, onnxruntime: Any, work: Workload) -> dict[str, Any]:
        """Make room for the outputs, which all bindings share."""
        make = onnxruntime.OrtValue.ortvalue_from_shape_and_type
        return {
            each.name: make(
                each.sized(work.batch), narrowed_type(self.precision, each.dtype).type, self.kind, self.number
            )
            for each in work.spec.outputs
        }

    def bound(self, session: Any, work: Workload, inputs: Arrays, outputs: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """Bind inputs and outputs, and return the binding with what must live as long as it does."""
        import onnxruntime

        binding, held = session.io_binding(), []
        for name, array in inputs.items():
            # On the CPU it shares the array's memory; to a GPU it is copied once.
            value = onnxruntime.OrtValue.ortvalue_from_numpy(narrowed(self.precision, array), self.kind, self.number)
            held.append(value)
            self._bind(binding.bind_input, binding.bind_ortvalue_input, name, str(array.dtype), value)
        for tensor in work.spec.outputs:
            value = outputs[tensor.name]
            self._bind(binding.bind_output, binding.bind_ortvalue_output, tensor.name, tensor.dtype, value)
        return binding, held

    def handed_through(self, inputs: Arrays, outputs: Mapping[str, Any]) -> list[tuple[Any, npt.NDArray[Any]]]:
        """Pair outputs of a graph that are its inputs too, which the session doesn't write, with what they are."""
        return [(value, narrowed(self.precision, inputs[name])) for name, value in outputs.items() if name in inputs]

    def read(self, tensor: Tensor, value: Any) -> npt.NDArray[Any]:
        return widened(self.precision, tensor.dtype, value.numpy())

    def _bind(
        self, by_address: Callable[..., Any], by_value: Callable[..., Any], name: str, dtype: str, value: Any
    ) -> None:
        if is_bfloat16(self.precision, dtype):
            by_address(name, self.kind, self.number, _BFLOAT16, list(value.shape()), value.data_ptr())
        else:
            by_value(name, value)


def call_of(session: Any, binding: Any, held: list[Any], run_options: Any = None) -> Callable[[], Any]:
    """Make the call, which keeps alive what is bound by its address."""
    arguments = (binding,) if run_options is None else (binding, run_options)
    call = partial(session.run_with_iobinding, *arguments)
    call.__dict__["held"] = held
    return call


def and_hand_through(call: Callable[[], Any], pairs: Sequence[tuple[Any, npt.NDArray[Any]]]) -> Callable[[], Any]:
    def called() -> None:
        call()
        for value, array in pairs:
            value.update_inplace(array)

    return called if pairs else call
