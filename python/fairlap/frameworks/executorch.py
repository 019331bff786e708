"""ExecuTorch, on a program that it exports from the PyTorch implementation: delegated to XNNPACK, or on its own
portable kernels alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from fairlap.errors import described
from fairlap.frameworks.answers import named_outputs
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported
from fairlap.frameworks.executorch_weights import told, weights_in
from fairlap.frameworks.refusals import refuse_what_is_unknown
from fairlap.workloads.workload import Arrays, Workload

METHOD = "forward"
_DTYPES = {5: "fp16", 6: "fp32", 15: "bf16"}  # by the numbers that ExecuTorch and PyTorch share


class ExecuTorch(Framework):
    name = "executorch"
    packages = ("executorch==1.5.1", "torch==2.13.0", "setuptools==84.2.1")  # the latter two it does not declare
    module = "executorch"
    variants = ("", "portable")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted, lacking="XNNPACK computes there in float32 or in integers")
        with phase("import"):
            import torch
            from executorch import version
            from executorch.extension.pybindings import portable_lib
        self._version = str(version.__version__)
        # Its one pool of threads is replaced, which is safe as long as nothing is loaded.
        portable_lib._unsafe_reset_threadpool(wanted.threads)
        with phase("convert"), torch.no_grad():
            model = work.implementation("torch").build(work.weights)
            names = [name for name in signature(model.forward).parameters if name in work.inputs]
            program = _converted(work, model, _tensors(work.inputs, names), wanted.variant)
        with phase("build"):
            file = program.buffer
            first = _loaded(file)
        held = weights_in(file, work.weights)
        ready = [first]

        def bind(inputs: Arrays) -> Callable[[], Any]:
            method = ready.pop() if ready else _loaded(file)
            return partial(method.execute, _tensors(inputs, names))

        return Contestant(
            bind=bind,
            done=None,  # a call copies the outputs out, so it returns when they are there
            outputs=lambda results: named_outputs(work.spec, [each.numpy() for each in results]),
            weights=lambda: held if held.keys() == work.weights.keys() else {},
            in_force={
                "threads": str(portable_lib._threadpool_get_thread_count()),
                "precision": _precision(first),
                "weights": told(held, work.weights),
                **_placed(program),
            },
        )

    def version(self) -> str:
        return self._version


def _tensors(arrays: Arrays, names: list[str]) -> tuple[Any, ...]:
    """They share the arrays' memory."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the array is read-only; nobody writes to it
        return tuple(torch.from_numpy(arrays[name]) for name in names)


def _converted(work: Workload, model: Any, inputs: tuple[Any, ...], variant: str) -> Any:
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    try:
        exported = torch.export.export(model, inputs)
        partitioner = None if variant == "portable" else [XnnpackPartitioner()]
        return to_edge_transform_and_lower(exported, partitioner=partitioner).to_executorch()
    except Exception as error:
        raise Unsupported(f"executorch cannot convert {work.spec.name}: {described(error)}") from error


def _loaded(file: bytes) -> Any:
    """A program of its own for each binding: methods of one program share their memory."""
    from executorch.runtime import Runtime

    return Runtime.get().load_program(file).load_method(METHOD)


def _precision(method: Any) -> str:
    meta = method.metadata
    described_tensors = [meta.output_tensor_meta(index) for index in range(meta.num_outputs())]
    kinds = {tensor.dtype() for tensor in described_tensors}
    return " and ".join(sorted(_DTYPES.get(kind, f"type {kind}") for kind in kinds))


def _placed(program: Any) -> dict[str, str]:
    """Which backend took the model over, and what it left to ExecuTorch's own kernels."""
    [plan] = program.executorch_program.execution_plan
    names = sorted(operator.name for operator in plan.operators)
    return {
        "delegates": " and ".join(sorted({delegate.id for delegate in plan.delegates})) or "none",
        "delegated_parts": str(len(plan.delegates)),
        "own_kernels": ", ".join(names) or "none",
    }
