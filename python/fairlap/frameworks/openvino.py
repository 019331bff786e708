"""OpenVINO: the ONNX graph, compiled for the CPU. It computes in bfloat16 unless it is told not to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported
from fairlap.frameworks.onnx_weights import weights_of_model
from fairlap.frameworks.thread_environment import thread_environment
from fairlap.workloads.workload import Arrays, Workload

_PRECISIONS = {"fp32": "f32", "bf16": "bf16"}


class OpenVino(Framework):
    name = "openvino"
    packages = ("openvino==2026.4.1", "onnx==1.23.2")
    module = "openvino"
    precisions = ("fp32", "bf16")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return thread_environment(settings.threads)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        if work.mode != "infer":
            raise Unsupported("openvino does not differentiate")
        if wanted.device != "cpu" or set(wanted.options) - {"precision_hint"}:
            raise Unsupported("openvino is driven on the CPU; its one option here is precision_hint")
        with phase("import"):
            import openvino
        self._openvino = openvino
        with phase("build"):
            model = work.implementation("onnx").build(work.weights, work.batch).SerializeToString()
            network = openvino.Core().read_model(model)
        settings = {
            "INFERENCE_NUM_THREADS": wanted.threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": wanted.options.get("precision_hint", _PRECISIONS[work.precision]),
        }
        with phase("compile"):
            compiled = openvino.Core().compile_model(network, "CPU", settings)
        names = [tensor.name for tensor in work.spec.outputs]

        def bind(inputs: Arrays) -> Callable[[], Any]:
            request = compiled.create_infer_request()
            # A tensor does not keep the memory it shares alive, and wants it writable.
            kept = {name: np.array(array) for name, array in inputs.items()}
            for name, array in kept.items():
                request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
            return partial(_infer, request.infer, request, kept)

        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda request: {name: np.array(request.get_tensor(name).data) for name in names},
            weights=lambda: _weights(model, work.precision),
            in_force=_in_force(compiled),
        )

    def version(self) -> str:
        return str(self._openvino.__version__).partition("-")[0]


def _infer(infer: Callable[[], Any], request: Any, _kept: Any) -> Any:
    infer()
    return request


def _weights(model: bytes, precision: str) -> dict[str, Any]:
    weights = weights_of_model(model)
    if precision == "fp32":
        return weights
    from fairlap.workloads.rounding import rounded_to_bfloat16

    return {name: rounded_to_bfloat16(array) for name, array in weights.items()}


def _in_force(compiled: Any) -> dict[str, str]:
    hint = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    return {
        "threads": str(compiled.get_property("INFERENCE_NUM_THREADS")),
        "precision": {"f32": "fp32"}.get(hint, hint),
        "streams": str(compiled.get_property("NUM_STREAMS")),
        "performance_hint": str(compiled.get_property("PERFORMANCE_HINT")),
        "weights": "read from the model's bytes: a compiled model does not give them back",
    }
