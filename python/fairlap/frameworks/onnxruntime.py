"""ONNX Runtime: a graph built without any framework, run through bound inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported
from fairlap.frameworks.onnx_weights import weights_of_model
from fairlap.frameworks.thread_environment import thread_environment
from fairlap.workloads.workload import Arrays, Workload


class OnnxRuntime(Framework):
    name = "onnxruntime"
    packages = ("onnxruntime==1.31.1", "onnx==1.23.2")
    module = "onnxruntime"
    environment = {"ORT_DISABLE_TELEMETRY": "1"}  # noqa: RUF012  read-only by its type

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {**cls.environment, **thread_environment(settings.threads)}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        if work.mode != "infer" or work.precision != "fp32":
            raise Unsupported(f"onnxruntime on a CPU has no mode {work.mode} in {work.precision}")
        if wanted.device != "cpu" or wanted.options:
            raise Unsupported("onnxruntime is driven on the CPU and without options here")
        with phase("import"):
            import onnxruntime
        self._onnxruntime = onnxruntime
        with phase("build"):
            model = work.implementation("onnx").build(work.weights, work.batch).SerializeToString()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = wanted.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        with phase("compile"):
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        names = [tensor.name for tensor in work.spec.outputs]

        def bind(inputs: Arrays) -> Callable[[], Any]:
            binding = session.io_binding()
            for name, array in inputs.items():
                binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(array)))
            for name in names:
                binding.bind_output(name)
            return partial(_run, session.run_with_iobinding, binding)

        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda result: dict(zip(names, result.copy_outputs_to_cpu(), strict=True)),
            weights=lambda: weights_of_model(model),
            in_force=_in_force(session),
        )

    def version(self) -> str:
        return str(self._onnxruntime.__version__)


def _run(run_with_iobinding: Callable[[Any], None], binding: Any) -> Any:
    run_with_iobinding(binding)
    return binding


def _in_force(session: Any) -> dict[str, str]:
    options = session.get_session_options()
    return {
        "threads": str(options.intra_op_num_threads),
        "precision": "fp32",
        "inter_op_threads": str(options.inter_op_num_threads),
        "optimisation": options.graph_optimization_level.name,
        "execution": options.execution_mode.name,
        "providers": ",".join(session.get_providers()),
        "weights": "read from the model's bytes: a session does not give them back",
    }
