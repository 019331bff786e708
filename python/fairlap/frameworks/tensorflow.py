"""TensorFlow: a module called eagerly, through tf.function, or through tf.function compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported
from fairlap.frameworks.thread_environment import thread_environment
from fairlap.workloads.workload import Arrays, Workload


class TensorFlow(Framework):
    name = "tensorflow"
    packages = ("tensorflow==2.21.0",)
    module = "tensorflow"
    variants = ("", "graph", "xla")
    modes = ("infer", "grad")
    precisions = ("fp32", "bf16")
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}  # noqa: RUF012  read-only by its type

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {**cls.environment, **thread_environment(settings.threads)}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        if wanted.device != "cpu" or wanted.options:
            raise Unsupported("tensorflow is driven on the CPU and without options here")
        with phase("import"):
            import tensorflow as tf
        self._tf = tf
        tf.config.threading.set_intra_op_parallelism_threads(wanted.threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        dtype = {"fp32": tf.float32, "bf16": tf.bfloat16}[work.precision]
        implementation = work.implementation("tensorflow")
        with phase("build"):
            model = implementation.build(work.weights, dtype)
        names = [tensor.name for tensor in work.spec.outputs]
        variables = model.variables_by_name
        step: Any = model.__call__ if work.mode == "infer" else _loss_and_gradients(tf, work, model)
        if wanted.variant:
            step = tf.function(step, jit_compile=wanted.variant == "xla", autograph=False)

        def tensors(inputs: Arrays) -> dict[str, Any]:
            placed = {name: tf.constant(array) for name, array in inputs.items()}
            return {name: tf.cast(each, dtype) if each.dtype.is_floating else each for name, each in placed.items()}

        if wanted.variant:
            with phase("compile"):  # tracing; XLA itself compiles at the first call
                step = step.get_concrete_function(tensors(work.inputs))

        def bind(inputs: Arrays) -> Callable[[], Any]:
            return partial(step, tensors(inputs))

        def outputs(result: Any) -> dict[str, Any]:
            if work.mode == "infer":
                return {name: _array(value) for name, value in zip(names, result, strict=True)}
            loss, gradients = result
            named = {
                f"grad/{name}": _array(implementation.canonical(name, _array(value)))
                for name, value in gradients.items()
            }
            return {"loss": _array(loss), **named}

        return Contestant(
            bind=bind,
            done=None,
            outputs=outputs,
            weights=lambda: {
                name: _array(implementation.canonical(name, _array(value))) for name, value in variables.items()
            },
            in_force=_in_force(tf, variables, wanted),
        )

    def version(self) -> str:
        return str(self._tf.__version__)


def _in_force(tf: Any, variables: dict[str, Any], wanted: Settings) -> dict[str, str]:
    kinds = {variable.dtype for variable in variables.values()} or {tf.float32}
    precision = {tf.float32: "fp32", tf.bfloat16: "bf16"}
    return {
        "threads": str(tf.config.threading.get_intra_op_parallelism_threads()),
        "precision": ",".join(sorted(precision.get(kind, kind.name) for kind in kinds)),
        "inter_op_threads": str(tf.config.threading.get_inter_op_parallelism_threads()),
        "execution": {"": "eager", "graph": "tf.function", "xla": "tf.function(jit_compile=True)"}[wanted.variant],
        "tensor_float_32": str(tf.config.experimental.tensor_float_32_execution_enabled()),
    }


def _loss_and_gradients(tf: Any, work: Workload, model: Any) -> Callable[..., Any]:
    trained = {weight.name for weight in work.spec.weights if weight.trained}
    variables = {name: each for name, each in model.variables_by_name.items() if name in trained}
    labels = None if work.labels is None else tf.constant(work.labels)

    def call(inputs: Any) -> Any:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(list(variables.values()))
            output = model(inputs)[0]
            if labels is None:
                loss = tf.reduce_mean(tf.square(output))
            else:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output))
        return loss, tape.gradient(loss, variables)

    return call


def _array(value: Any) -> Any:
    array = value.numpy() if hasattr(value, "numpy") else value
    return np.array(array, dtype=np.float32, order="C")
