"""What an adapter adds to a step: fairlap's callable beside the tightest loop one would write by hand.

Both run in one process on the same built model, in turns, timed by the same engine, so that all they differ in is
the adapter's wrapping. Goals: within 1 % for a step of 100 us, within 1 us for a step of 5 us.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from fairlap.engine import time_calls
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.workloads.draw import draw_inputs, draw_weights
from fairlap.workloads.registry import find
from fairlap.workloads.workload import Workload

FRAMEWORKS = ("torch", "jax", "tensorflow:graph", "onnxruntime", "openvino")
MODELS = ("softmax", "mlp", "gemm")
TURNS = 8
SECONDS_EACH = 0.1


class NoPhase:
    """Nothing is told of phases here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def by_hand(name: str, work: Workload) -> tuple[Callable[[], Any], Callable[[Any], Any] | None]:
    """The loop's body as an expert would write it for this one model, with nothing of fairlap in it."""
    first = work.spec.inputs[0].name
    array = np.array(work.inputs[first])
    if name == "torch":
        import torch

        model = work.implementation("torch").build(work.weights)
        tensors = {key: torch.from_numpy(np.array(value)) for key, value in work.inputs.items()}
        places = [tensors[tensor.name] for tensor in work.spec.inputs]
        return (lambda: model(*places)), None
    if name == "jax":
        import jax

        implementation = work.implementation("jax")
        weights = jax.device_put(implementation.params(work.weights))
        inputs = jax.device_put({key: np.array(value) for key, value in work.inputs.items()})
        step = jax.jit(implementation.forward)
        return (lambda: step(weights, inputs)), jax.block_until_ready
    if name == "tensorflow:graph":
        import tensorflow as tf

        model = work.implementation("tensorflow").build(work.weights, tf.float32)
        tensors = {key: tf.constant(value) for key, value in work.inputs.items()}
        graph = tf.function(model.__call__, autograph=False).get_concrete_function(tensors)
        return (lambda: graph(tensors)), None
    model = work.implementation("onnx").build(work.weights, work.batch).SerializeToString()
    if name == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        binding.bind_ortvalue_input(first, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for tensor in work.spec.outputs:
            binding.bind_output(tensor.name)
        return (lambda: session.run_with_iobinding(binding)), None
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(core.read_model(model), "CPU", settings).create_infer_request()
    request.set_tensor(first, openvino.Tensor(array))
    return (lambda: request.infer(share_outputs=True)), None


def measured(name: str, model: str) -> dict[str, float]:
    framework_name, _, variant = name.partition(":")
    found = find(model)
    spec = found.spec
    work = Workload(spec, found.package, 1, "infer", "fp32", draw_weights(spec, 0), draw_inputs(spec, 1, 0), None)
    contestant = framework_named(framework_name)().prepare(work, Settings(1, variant), NoPhase)
    ours, ours_done = contestant.bind(work.inputs), contestant.done
    theirs, theirs_done = by_hand(name, work)
    medians: dict[str, list[float]] = {"adapter": [], "by hand": []}
    for turn in range(TURNS):
        pair = [("adapter", ours, ours_done), ("by hand", theirs, theirs_done)]
        for who, call, done in pair if turn % 2 else pair[::-1]:
            medians[who].append(time_calls(call, done=done, seconds=SECONDS_EACH).median_ns)
    differences = [ours - theirs for ours, theirs in zip(medians["adapter"], medians["by hand"], strict=True)]
    return {
        "by hand": statistics.median(medians["by hand"]),
        "adapter": statistics.median(medians["adapter"]),
        "difference": statistics.median(differences),
    }


def main() -> None:
    print(f"{'framework':<18}{'model':<10}{'by hand':>12}{'adapter':>12}{'difference':>13}{'share':>9}")
    for name in FRAMEWORKS:
        framework = framework_named(name.partition(":")[0])
        if not is_importable(framework):
            print(f"{name:<18}is not installed here")
            continue
        variables = {**os.environ, **framework.environment_for(Settings(1, name.partition(":")[2]))}
        for model in MODELS:
            command = [sys.executable, __file__, name, model]
            told = subprocess.run(command, env=variables, capture_output=True, text=True)
            if told.returncode != 0:
                print(f"{name:<18}{model:<10}failed: {told.stderr.strip().splitlines()[-1]}")
                continue
            figures = json.loads(told.stdout.splitlines()[-1])
            share = figures["difference"] / figures["by hand"]
            us = {key: value / 1e3 for key, value in figures.items()}
            print(
                f"{name:<18}{model:<10}{us['by hand']:>9.2f} us{us['adapter']:>9.2f} us"
                f"{us['difference']:>+10.2f} us{share:>+9.1%}"
            )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measured(sys.argv[1], sys.argv[2])))
    else:
        main()
