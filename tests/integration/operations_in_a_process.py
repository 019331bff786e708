"""Small operations of every kind in one framework, each compared with its float64 reference; prints JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from fairlap.models.arrays import Arrays
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload


def main(framework: str, *names: str) -> dict[str, Any]:
    answer_in = {
        "torch": _in_torch,
        "jax": _in_jax,
        "tensorflow": _in_tensorflow,
        "onnxruntime": _in_onnxruntime,
        "openvino": _in_openvino,
    }[framework]
    return {name: _compared(name, answer_in) for name in names}


def _compared(name: str, answer_in: Callable[[Workload], tuple[Any, Arrays]]) -> dict[str, Any]:
    found = find(name)
    weights, inputs = draw_weights(found.spec, 1), draw_inputs(found.spec, 1, 2)
    work = Workload(found.spec, found.package, 1, "infer", "fp32", weights, inputs)
    answer, held = answer_in(work)
    wanted = reference_answers(work)[found.spec.outputs[0].name]
    return {
        "shape": np.shape(answer) == wanted.shape,
        "error": float(np.abs(np.asarray(answer, np.float64) - wanted).max()),
        "weights": held.keys() == weights.keys() and all(np.array_equal(held[key], weights[key]) for key in weights),
        "gmacs": found.spec.gmacs_per_item,
    }


def _in_torch(work: Workload) -> tuple[Any, Arrays]:
    import torch

    model = work.implementation("torch").build(work.weights)
    with torch.inference_mode():
        (answer,) = model(*[torch.tensor(array) for array in work.inputs.values()])
    return answer.numpy(), {name: array.numpy() for name, array in model.state_dict().items()}


def _in_jax(work: Workload) -> tuple[Any, Arrays]:
    import jax

    model = work.implementation("jax")
    params = model.params(work.weights)
    (answer,) = jax.jit(model.forward)(params, dict(work.inputs))
    return answer, model.canonical(params)


def _in_tensorflow(work: Workload) -> tuple[Any, Arrays]:
    import tensorflow as tf

    implementation = work.implementation("tensorflow")
    model = implementation.build(work.weights, tf.float32)
    (answer,) = model({name: tf.constant(array) for name, array in work.inputs.items()})
    held = model.variables_by_name.items()
    return answer.numpy(), {name: implementation.canonical(name, variable.numpy()) for name, variable in held}


def _in_onnxruntime(work: Workload) -> tuple[Any, Arrays]:
    import onnxruntime

    graph = _graph(work)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(work.inputs))[0], _initializers(graph)


def _in_openvino(work: Workload) -> tuple[Any, Arrays]:
    import openvino

    graph, core = _graph(work), openvino.Core()
    model = core.read_model(graph.SerializeToString())
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled(dict(work.inputs))[0], _initializers(graph)


def _graph(work: Workload) -> Any:
    import onnx

    graph = work.implementation("onnx").build(work.weights, work.batch)
    onnx.checker.check_model(graph, full_check=True)
    return graph


def _initializers(graph: Any) -> Arrays:
    from onnx import numpy_helper

    return {each.name: numpy_helper.to_array(each) for each in graph.graph.initializer}


if __name__ == "__main__":
    answer_file = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no answer
    json.dump(main(*sys.argv[1:]), answer_file)
    answer_file.flush()
    os._exit(0)
