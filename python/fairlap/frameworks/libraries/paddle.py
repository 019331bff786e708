"""PaddlePaddle: dynamically, and as a static graph that ``paddle.jit.to_static`` traces."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairlap.frameworks.adapter_parts.answers import (
    LOSS,
    answers_of_tensors,
    as_float32,
    batch_of,
    trained_names,
    weights_of_tensors,
)
from fairlap.frameworks.adapter_parts.devices import paddle_on_device
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    Contestant,
    Framework,
    Phase,
    Settings,
    TrainingState,
    refuse_what_is_unknown,
)
from fairlap.models.arrays import Arrays
from fairlap.models.modes import MODES
from fairlap.models.spec import LABELS, Loss
from fairlap.models.workload import Workload

_SETUPTOOLS = "setuptools==80.9.0"  # which Paddle imports, but not the newest
_NO_STATISTICS = "Paddle's statistics of memory are those of GPUs"

# Without it, operations of a graph run concurrently on a thread pool, whatever the requested number of threads.
_ON_THE_CALLING_THREAD = "FLAGS_enable_pir_in_executor_trace_run"


class Paddle(Framework):
    name = "paddle"
    packages = ("paddlepaddle==3.3.1", _SETUPTOOLS)
    packages_on: ClassVar = {"cuda": ("paddlepaddle-gpu==3.3.1", _SETUPTOOLS)}  # from Paddle's own package index
    module = "paddle"
    no_precision: ClassVar = dict.fromkeys(("fp16", "bf16"), "its products do not take it")
    variants = ("", "static")
    tunable: ClassVar = {"variant": ("static",)}
    devices = ("cpu", "cuda")
    device_memory_limit = "FLAGS_gpu_memory_limit_mb"
    precisions = ("fp32", "tf32")
    modes = ("infer", "grad", "train")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {
            "GLOG_minloglevel": "2",
            "OMP_NUM_THREADS": str(settings.threads),
            "MKL_NUM_THREADS": str(settings.threads),
            _ON_THE_CALLING_THREAD: "1",
            **paddle_on_device.environment_for(settings),
        }

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import paddle
        if wanted.device == "cpu":
            paddle.set_device("cpu")
        else:
            install, tf32 = self.packages_on["cuda"][0], work.precision == "tf32"
            paddle_on_device.prepare_device(wanted.device, install, tf32=tf32)
        paddle.base.core.set_num_threads(wanted.threads)
        self._version = str(paddle.__version__)
        paddle.set_grad_enabled(not MODES[work.mode].gives_outputs)  # for the whole process: per call it would be timed
        implementation = work.implementation("paddle")
        with phase("build"):
            model = implementation.build(work.weights)
            trained = trained_names(work.spec)
            for name, tensor in model.parameters_by_name.items():
                tensor.stop_gradient = name not in trained
        if work.training is not None:
            return self._trained(work, wanted, model, phase)
        make_forward, bind = _CALLED[work.mode]
        forward = make_forward(model, work)
        if wanted.variant == "static":
            forward = _static(forward)
            with phase("trace"):
                forward.get_concrete_program(_tensors(work, work.inputs))
            with phase("compile"):
                bind(work, model, forward, work.inputs)()  # the first call creates the executor
        return Contestant(
            bind=partial(bind, work, model, forward),
            # On a CPU kernels run inside the call, and the static graph's executor on its thread too. On a GPU calls
            # return when all is enqueued.
            done=None,
            outputs=partial(answers_of_tensors, work, implementation.canonical),
            weights=partial(weights_of_tensors, work, implementation.canonical, model.parameters_by_name),
            in_force=_in_force(model, wanted),
            no_memory_because=_NO_STATISTICS,
            **paddle_on_device.on_device(wanted.device),
        )

    def _trained(self, work: Workload, wanted: Settings, model: Any, phase: Phase) -> Contestant:
        from fairlap.frameworks.adapter_parts.training.paddle_training import PaddleTraining

        implementation, held = work.implementation("paddle"), model.parameters_by_name
        model.train()
        loss = _loss_of_batch(model, work.spec.loss)
        if wanted.variant == "static":
            loss = _static(loss)
            with phase("trace"):
                loss.get_concrete_program(*_batch(work, batch_of(work)))
        training = PaddleTraining(work, held, implementation.build, implementation.canonical, loss)

        def bind(arrays: Arrays) -> Callable[[], Any]:
            return partial(training.step, *_batch(work, arrays))

        if wanted.variant == "static":
            with phase("compile"):
                bind(batch_of(work))()  # the first call creates the executors
                training.reset()
        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda loss: {LOSS: as_float32(loss.numpy())},
            weights=partial(weights_of_tensors, work, implementation.canonical, held),
            in_force={**_in_force(model, wanted), **training.in_force()},
            training=TrainingState(training.state, training.reset, training.restore, held_bytes=training.held_bytes),
            no_memory_because=_NO_STATISTICS,
            **paddle_on_device.on_device(wanted.device),
        )


def _forward(model: Any, _work: Workload) -> Callable[[list[Any]], Any]:
    """Of a list: ``to_static`` takes no function with ``*inputs``."""

    def forward(inputs: list[Any]) -> Any:
        return model(*inputs)

    return forward


def _static(function: Any) -> Any:
    """Traced without rewriting: rewritten source would stay in the home folder, since workers exit at once."""
    import paddle

    return paddle.jit.to_static(paddle.jit.not_to_static(function), full_graph=True)


def _loss(model: Any, work: Workload) -> Callable[[list[Any]], Any]:
    """With the labels bound, since all calls have the same ones."""
    of_batch = _loss_of_batch(model, work.spec.loss)
    labels = None if work.labels is None else _labels(work.labels)

    def loss(inputs: list[Any]) -> Any:
        return of_batch(inputs, labels)

    return loss


def _loss_of_batch(model: Any, kind: Loss) -> Callable[[list[Any], Any], Any]:
    from paddle.nn.functional import cross_entropy, mse_loss

    def mean_square(inputs: list[Any], _labels: Any) -> Any:
        return model(*inputs)[0].square().mean()

    def square_error(inputs: list[Any], labels: Any) -> Any:
        return mse_loss(model(*inputs)[0], labels)

    def mean_cross_entropy(inputs: list[Any], labels: Any) -> Any:
        first = model(*inputs)[0]
        rows = first if first.ndim == 2 else first.reshape([-1, first.shape[-1]])
        return cross_entropy(rows, labels)

    losses = {"mean_square": mean_square, "square_error": square_error, "cross_entropy": mean_cross_entropy}
    return losses[kind]


def _bind_forward(
    work: Workload, _model: Any, forward: Callable[[list[Any]], Any], inputs: Arrays
) -> Callable[[], Any]:
    return partial(forward, _tensors(work, inputs))


def _bind_step(work: Workload, model: Any, forward: Callable[[list[Any]], Any], inputs: Arrays) -> Callable[[], Any]:
    import paddle

    tensors = _tensors(work, inputs)
    trained = [model.parameters_by_name[name] for name in trained_names(work.spec)]

    def step() -> tuple[Any, list[Any]]:
        loss = forward(tensors)
        return loss, paddle.grad(loss, trained)

    return step


_CALLED = {"infer": (_forward, _bind_forward), "grad": (_loss, _bind_step)}


def _batch(work: Workload, arrays: Arrays) -> tuple[list[Any], Any]:
    return _tensors(work, arrays), _labels(arrays[LABELS]) if LABELS in arrays else None


def _labels(array: npt.NDArray[Any]) -> Any:
    """Classes as Paddle takes them: one row of int64; values as they are."""
    import paddle

    return paddle.to_tensor(array if array.dtype.kind == "f" else array.reshape(-1).astype(np.int64))


def _tensors(work: Workload, arrays: Arrays) -> list[Any]:
    import paddle

    return [paddle.to_tensor(arrays[each.name]) for each in work.spec.inputs]


def _in_force(model: Any, wanted: Settings) -> dict[str, str]:
    import paddle

    flags = paddle.get_flags(["FLAGS_use_onednn", "FLAGS_allocator_strategy", _ON_THE_CALLING_THREAD])
    kinds = {tensor.dtype for tensor in model.parameters_by_name.values()}
    on_device = paddle_on_device.in_force(model.parameters_by_name.values(), wanted.device)
    held = " and ".join(sorted(_kind(each) for each in kinds)) or NO_WEIGHTS
    found = {
        "threads": _threads(wanted.threads),
        "precision": "tf32" if held == "fp32" and on_device.get("tf32") == "on" else held,
        "execution": "static graph" if wanted.variant == "static" else "dynamic",
        "gradients": _on(paddle.is_grad_enabled()),
        "onednn": _on(flags["FLAGS_use_onednn"]),
        "allocator": flags["FLAGS_allocator_strategy"],
        **on_device,
    }
    if wanted.variant == "static":
        found["executor"] = "the calling thread" if flags[_ON_THE_CALLING_THREAD] else "a pool of threads"
    return found


def _threads(asked: int) -> str:
    """Read the thread count of the OpenMP library that Paddle's kernels and MKL use."""
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
