"""Apache MXNet's Gluon: imperatively, and hybridized into a graph with memory laid out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, as_float32, named_gradients, named_outputs, trained_names
from fairlap.frameworks.contract import NO_WEIGHTS, Contestant, Framework, Phase, Settings, refuse_what_is_unknown
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload


class MXNet(Framework):
    name = "mxnet"
    packages = ("mxnet==1.9.1", "numpy==1.23.5")  # it imports a name that newer NumPy lacks
    module = "mxnet"
    no_precision: ClassVar = dict.fromkeys(("fp16", "bf16"), "its products and normalisations do not take it")
    variants = ("", "hybrid")
    tunable: ClassVar = {"variant": ("hybrid",)}
    modes = ("infer", "grad")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {
            "OMP_NUM_THREADS": str(settings.threads),
            "OPENBLAS_NUM_THREADS": str(settings.threads),
            "MXNET_CPU_WORKER_NTHREADS": "1",  # operations one after the other, each on all threads
        }

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import mxnet
        self._version = str(mxnet.__version__)
        in_mode = _MODES[work.mode]
        with phase("build"):
            model = work.implementation("mxnet").build(work.weights)
            trained = trained_names(work.spec)
            for name, parameter in model.parameters_by_name.items():
                parameter.grad_req = "write" if in_mode.needs_slopes and name in trained else "null"
            forward = in_mode.forward(model, work)
        if wanted.variant == "hybrid":
            with phase("compile"):
                forward.hybridize(static_alloc=True, static_shape=True)
                _wait(in_mode.bind(work, model, forward, work.inputs)())  # the first call builds the graph
        return Contestant(
            bind=partial(in_mode.bind, work, model, forward),
            done=_wait,
            outputs=partial(in_mode.answers, work),
            weights=partial(_weights, work, model),
            in_force=_in_force(model, wanted),
        )


def _with_loss(model: Any, work: Workload) -> Any:
    """Combine the model and its loss in a block that hybridizes as a whole."""
    from mxnet.gluon import HybridBlock
    from mxnet.gluon.loss import SoftmaxCrossEntropyLoss

    class Loss(HybridBlock):  # type: ignore[misc]  # not installed where types are checked
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.cross_entropy = SoftmaxCrossEntropyLoss()

        def hybrid_forward(self, F: Any, *tensors: Any) -> Any:
            if work.labels is None:
                return F.mean(F.square(self.model(*tensors)[0]))
            *inputs, labels = tensors
            return F.mean(self.cross_entropy(self.model(*inputs)[0], labels))

    return Loss()


def _tensors(work: Workload, inputs: Arrays) -> list[Any]:
    from mxnet import nd

    return [nd.array(inputs[each.name], dtype=each.dtype) for each in work.spec.inputs]


def _bind_forward(work: Workload, _model: Any, forward: Any, inputs: Arrays) -> Callable[[], Any]:
    return partial(forward, *_tensors(work, inputs))


def _bind_step(work: Workload, model: Any, forward: Any, inputs: Arrays) -> Callable[[], Any]:
    from mxnet import autograd, nd

    tensors = _tensors(work, inputs)
    if work.labels is not None:
        tensors.append(nd.array(work.labels, dtype=work.labels.dtype))
    gradients = [model.parameters_by_name[name].grad() for name in trained_names(work.spec)]

    def step() -> tuple[Any, ...]:
        with autograd.record():  # in training mode: in the other a max pooling's gradients came out wrong
            loss = forward(*tensors)
        loss.backward()  # writes into the gradients
        return (loss, *gradients)

    return step


def _wait(result: tuple[Any, ...]) -> None:
    """MXNet's calls only queue work. Waiting also raises its errors."""
    for each in result:
        each.wait_to_read()


def _outputs(work: Workload, result: tuple[Any, ...]) -> Answers:
    return named_outputs(work.spec, [each.asnumpy() for each in result])


def _gradients(work: Workload, result: tuple[Any, ...]) -> Answers:
    loss, *gradients = result
    by_name = zip(trained_names(work.spec), gradients, strict=True)
    return named_gradients(loss.asnumpy().reshape(()), {name: each.asnumpy() for name, each in by_name})


class _InMode(NamedTuple):
    forward: Callable[[Any, Workload], Any]
    bind: Callable[[Workload, Any, Any, Arrays], Callable[[], Any]]
    answers: Callable[[Workload, tuple[Any, ...]], Answers]
    needs_slopes: bool


_MODES = {
    "infer": _InMode(lambda model, _work: model, _bind_forward, _outputs, needs_slopes=False),
    "grad": _InMode(_with_loss, _bind_step, _gradients, needs_slopes=True),
}


def _weights(work: Workload, model: Any) -> Answers:
    held = model.parameters_by_name
    return {weight.name: as_float32(held[weight.name].data().asnumpy()) for weight in work.spec.weights}


def _in_force(model: Any, wanted: Settings) -> dict[str, str]:
    import mxnet

    kinds = {parameter.data().dtype for parameter in model.parameters_by_name.values()}
    features = mxnet.runtime.Features()
    return {
        "threads": _asked_of_library("omp_get_max_threads", wanted.threads),
        "precision": " and ".join(sorted(_kind(each) for each in kinds)) or NO_WEIGHTS,
        "execution": "hybridized" if wanted.variant == "hybrid" else "imperative",
        "onednn": "on" if features.is_enabled("MKLDNN") else "off",
        "blas_threads": _asked_of_library("openblas_get_num_threads", wanted.threads),
    }


def _asked_of_library(function: str, asked: int) -> str:
    """Ask a library that MXNet is linked with for its thread count."""
    import mxnet

    try:
        return str(getattr(mxnet.base._LIB, function)())
    except AttributeError:
        return f"{asked} requested, not readable"


def _kind(dtype: Any) -> str:
    return "fp32" if dtype is np.float32 else str(dtype)
