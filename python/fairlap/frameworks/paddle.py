"""PaddlePaddle: dynamically, and as a static graph that ``paddle.jit.to_static`` traces."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fairlap.frameworks.adapter_parts.answers import answers_of_tensors, trained_names, weights_of_tensors
from fairlap.frameworks.contract import NO_WEIGHTS, Contestant, Framework, Phase, Settings, refuse_what_is_unknown
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

# Without it, operations of a graph run concurrently on a thread pool, whatever the requested number of threads.
_ON_THE_CALLING_THREAD = "FLAGS_enable_pir_in_executor_trace_run"


class Paddle(Framework):
    name = "paddle"
    packages = ("paddlepaddle==3.3.1", "setuptools==80.9.0")  # it imports setuptools, but not the newest
    module = "paddle"
    no_precision: ClassVar = dict.fromkeys(("fp16", "bf16"), "its products do not take it")
    variants = ("", "static")
    modes = ("infer", "grad")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {
            "GLOG_minloglevel": "2",
            "OMP_NUM_THREADS": str(settings.threads),
            "MKL_NUM_THREADS": str(settings.threads),
            _ON_THE_CALLING_THREAD: "1",
        }

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import paddle
        paddle.base.core.set_num_threads(wanted.threads)
        self._version = str(paddle.__version__)
        paddle.set_grad_enabled(work.mode == "grad")  # for the whole process: per call it would be timed
        implementation = work.implementation("paddle")
        with phase("build"):
            model = implementation.build(work.weights)
            trained = trained_names(work.spec)
            for name, tensor in model.parameters_by_name.items():
                tensor.stop_gradient = name not in trained
        forward = _forward(model) if work.mode == "infer" else _loss(model, work)
        if wanted.variant == "static":
            # Traced without rewriting: rewritten source would stay in the home folder, since workers exit at once.
            forward = paddle.jit.to_static(paddle.jit.not_to_static(forward), full_graph=True)
            with phase("trace"):
                forward.get_concrete_program(_tensors(work, work.inputs))
            with phase("compile"):
                _bind(work, model, forward, work.inputs)()  # the first call creates the executor
        return Contestant(
            bind=partial(_bind, work, model, forward),
            done=None,  # on a CPU kernels run inside the call, and the static graph's executor on its thread too
            outputs=partial(answers_of_tensors, work, implementation.canonical),
            weights=partial(weights_of_tensors, work, implementation.canonical, model.parameters_by_name),
            in_force=_in_force(model, wanted),
        )

    def version(self) -> str:
        return self._version


def _forward(model: Any) -> Callable[[list[Any]], Any]:
    """Of a list: ``to_static`` takes no function with ``*inputs``."""

    def forward(inputs: list[Any]) -> Any:
        return model(*inputs)

    return forward


def _loss(model: Any, work: Workload) -> Callable[[list[Any]], Any]:
    import paddle

    def mean_square(inputs: list[Any]) -> Any:
        return model(*inputs)[0].square().mean()

    def square_error(inputs: list[Any]) -> Any:
        return paddle.nn.functional.mse_loss(model(*inputs)[0], labels)

    def mean_cross_entropy(inputs: list[Any]) -> Any:
        first = model(*inputs)[0]
        return paddle.nn.functional.cross_entropy(first.reshape([-1, first.shape[-1]]), labels)

    if work.labels is None:
        return mean_square
    if work.spec.loss == "square_error":
        labels = paddle.to_tensor(work.labels)
        return square_error
    labels = paddle.to_tensor(work.labels.reshape(-1).astype(np.int64))
    return mean_cross_entropy


def _bind(work: Workload, model: Any, forward: Callable[[list[Any]], Any], inputs: Arrays) -> Callable[[], Any]:
    import paddle

    tensors = _tensors(work, inputs)
    if work.mode == "infer":
        return partial(forward, tensors)
    trained = [model.parameters_by_name[name] for name in trained_names(work.spec)]

    def step() -> tuple[Any, list[Any]]:
        loss = forward(tensors)
        return loss, paddle.grad(loss, trained)

    return step


def _tensors(work: Workload, arrays: Arrays) -> list[Any]:
    import paddle

    return [paddle.to_tensor(arrays[each.name]) for each in work.spec.inputs]


def _in_force(model: Any, wanted: Settings) -> dict[str, str]:
    import paddle

    flags = paddle.get_flags(["FLAGS_use_onednn", "FLAGS_allocator_strategy", _ON_THE_CALLING_THREAD])
    kinds = {tensor.dtype for tensor in model.parameters_by_name.values()}
    found = {
        "threads": _threads(wanted.threads),
        "precision": " and ".join(sorted(_kind(each) for each in kinds)) or NO_WEIGHTS,
        "execution": "static graph" if wanted.variant == "static" else "dynamic",
        "gradients": _on(paddle.is_grad_enabled()),
        "onednn": _on(flags["FLAGS_use_onednn"]),
        "allocator": flags["FLAGS_allocator_strategy"],
    }
    if wanted.variant == "static":
        found["executor"] = "the calling thread" if flags[_ON_THE_CALLING_THREAD] else "a pool of threads"
    return found


def _threads(asked: int) -> str:
    """The thread count of the OpenMP library that its kernels and MKL use."""
    import paddle

    library = Path(paddle.__file__).with_name("libs") / "libiomp5.so"
    if not library.exists():
        return f"{asked} requested, not readable"
    return str(ctypes.CDLL(str(library)).omp_get_max_threads())  # the copy that is already loaded


def _kind(dtype: Any) -> str:
    import paddle

    return "fp32" if dtype == paddle.float32 else str(dtype)


def _on(yes: bool) -> str:
    return "on" if yes else "off"
