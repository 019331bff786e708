"""ExecuTorch, on a program that it exports from the PyTorch implementation.

The program is delegated to XNNPACK, or runs on ExecuTorch's own portable kernels alone.

The runtime exposes neither names nor values of the weights, so they are searched in the bytes of the program, bit for
bit, in the layouts of its kernels and of XNNPACK's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairlap.errors import described
from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported, refuse_what_is_unknown
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

_KERNEL_LAYOUTS = ((0, 1, 2, 3), (0, 2, 3, 1), (1, 2, 3, 0))  # as given, channels last, depthwise for XNNPACK


def weights_in(program: bytes, given: Arrays) -> Answers:
    """Find the given weights in the program, up to the first that is missing."""
    found: Answers = {}
    for name, weight in given.items():
        held = _found(program, weight)
        if held is None:
            break
        found[name] = held
    return found


def read_back(found: Answers, given: Arrays) -> str:
    missing = next((name for name in given if name not in found), None)
    if missing is None:
        return "found by value in the program's bytes; the runtime cannot be asked"
    return f"not read back: {missing} is not in the program unchanged; it may be folded into another weight"


def _found(program: bytes, weight: npt.NDArray[np.float32]) -> npt.NDArray[np.float32] | None:
    layouts = _KERNEL_LAYOUTS if weight.ndim == 4 else (tuple(range(weight.ndim)),)
    for axes in layouts:
        turned = weight.transpose(axes)
        at = program.find(turned.tobytes())
        if at >= 0:
            held = np.frombuffer(program, np.float32, weight.size, at).reshape(turned.shape)
            return np.ascontiguousarray(held.transpose(np.argsort(axes)))
    return None


METHOD = "forward"
_DTYPES = {5: "fp16", 6: "fp32", 15: "bf16"}  # by the numbers that ExecuTorch and PyTorch share


class ExecuTorch(Framework):
    name = "executorch"
    packages = ("executorch==1.5.1", "torch==2.13.0", "setuptools==84.2.1")  # it does not declare the latter two
    module = "executorch"
    no_precision: ClassVar = dict.fromkeys(("fp16", "bf16"), "XNNPACK computes there in float32 or in integers")
    implementation = "torch"
    variants = ("", "portable")
    tunable: ClassVar = {"variant": ("portable",)}  # without XNNPACK

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import torch
            from executorch import version
            from executorch.extension.pybindings import portable_lib
        self._version = str(version.__version__)
        # Its only thread pool is replaced, which is safe as long as no program is loaded.
        portable_lib._unsafe_reset_threadpool(wanted.threads)
        with phase("convert"), torch.no_grad():
            model = work.implementation("torch").build(work.weights)
            places = [name for name in signature(model.forward).parameters if name in work.inputs]
            by_place = len(places) == len(work.inputs)
            names = places if by_place else [tensor.name for tensor in work.spec.inputs]
            tensors = _tensors(work.inputs, names)
            named = {} if by_place else dict(zip(names, tensors, strict=True))
            program = _converted(work, model, tensors if by_place else (), named, wanted.variant)
        with phase("build"):
            file = program.buffer
            first = _loaded(file)
        held = weights_in(file, work.weights)
        return Contestant(
            bind=lambda inputs: partial(_run, file, first.execute, _tensors(inputs, names)),
            done=None,  # a call returns when it has copied the outputs
            outputs=lambda results: named_outputs(work.spec, [each.numpy() for each in results]),
            weights=lambda: held if held.keys() == work.weights.keys() else {},
            in_force={
                "threads": str(portable_lib._threadpool_get_thread_count()),
                "precision": _precision(first),
                "weights": read_back(held, work.weights),
                **_placed(program),
            },
        )


def _run(_program: bytes, execute: Callable[[Any], Any], tensors: tuple[Any, ...]) -> Any:
    """Run the method and keep its program alive, because it reads the program where the bytes are."""
    return execute(tensors)


def _tensors(arrays: Arrays, names: list[str]) -> tuple[Any, ...]:
    """They share the arrays' memory."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the array is read-only, and nothing writes to it
        return tuple(torch.from_numpy(arrays[name]) for name in names)


def _converted(work: Workload, model: Any, inputs: tuple[Any, ...], named: dict[str, Any], variant: str) -> Any:
    """Convert the model to a program, whose inputs have the order in which the module gets them, named ones last."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    try:
        exported = torch.export.export(model, inputs, named)
        partitioner = None if variant == "portable" else [XnnpackPartitioner()]
        return to_edge_transform_and_lower(exported, partitioner=partitioner).to_executorch()
    except Exception as error:
        raise Unsupported(f"executorch cannot convert {work.spec.name}: {described(error)}") from error


def _loaded(file: bytes) -> Any:
    from executorch.runtime import Runtime

    return Runtime.get().load_program(file).load_method(METHOD)


def _precision(method: Any) -> str:
    meta = method.metadata
    described_tensors = [meta.output_tensor_meta(index) for index in range(meta.num_outputs())]
    kinds = {tensor.dtype() for tensor in described_tensors}
    return " and ".join(sorted(_DTYPES.get(kind, f"type {kind}") for kind in kinds))


def _placed(program: Any) -> dict[str, str]:
    """Describe the backend that runs the model, and what it left to ExecuTorch's own kernels."""
    [plan] = program.executorch_program.execution_plan
    names = sorted(operator.name for operator in plan.operators)
    return {
        "delegates": " and ".join(sorted({delegate.id for delegate in plan.delegates})) or "none",
        "delegated_parts": str(len(plan.delegates)),
        "own_kernels": ", ".join(names) or "none",
    }
