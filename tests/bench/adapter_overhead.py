"""What an adapter adds to a step: fairlap's callable compared with the tightest hand-written loop.

Both run in one process on the same weights and inputs, compared by fairlap itself in randomly ordered blocks, so that
they differ only in the adapter's wrapping. Goals: within 1 % for a step of 100 us, within 1 us for a step of 5 us.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fairlap
import numpy as np
from bench_processes import measured_in_processes
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.registry import find
from fairlap.models.spec import Spec
from fairlap.models.workload import Workload

FRAMEWORKS = ("torch", "jax", "tensorflow:graph", "onnxruntime", "openvino")
MODELS = ("softmax", "mlp", "gemm")
TINY = "softmax 8x8"  # a step of a few microseconds, where any overhead shows
BLOCKS = 30
SECONDS_EACH = 0.05


class NoPhase:
    """Phases are not timed here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def by_hand(name: str, work: Workload) -> tuple[Callable[[], Any], Callable[[Any], Any] | None]:
    """Return the loop's body as an expert would write it for this one model, without fairlap."""
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


def tiny_softmax() -> Spec:
    """Replace the model's sizes by 64 numbers; its own code remains, and its ONNX graph has the sizes of the spec."""
    from fairlap.bench_models.softmax import spec

    large = find("softmax").spec
    shape = ("batch", 8, 8)
    small = replace(
        large,
        inputs=tuple(replace(each, shape=shape) for each in large.inputs),
        outputs=tuple(replace(each, shape=shape) for each in large.outputs),
    )
    vars(spec)["SPEC"] = small
    return small


def measured(name: str, model: str) -> dict[str, float]:
    framework_name, _, variant = name.partition(":")
    offered = find("softmax" if model == TINY else model)
    spec = tiny_softmax() if model == TINY else offered.spec
    work = Workload(spec, offered.package, 1, "infer", "fp32", draw_weights(spec, 0), draw_inputs(spec, 1, 0), None)
    contestant = framework_named(framework_name)().prepare(work, Settings(1, variant), NoPhase)
    theirs, theirs_done = by_hand(name, work)
    pair = {"adapter": contestant.bind(work.inputs), "by hand": theirs}
    waits = {who: done for who, done in (("adapter", contestant.done), ("by hand", theirs_done)) if done is not None}
    found = fairlap.compare(pair, done=waits or (lambda result: result), blocks=BLOCKS, seconds=SECONDS_EACH)
    ratio = found.between("adapter", "by hand")
    by_hand_ns = next(row.median_ns for row in found.rows if row.name == "by hand")
    return {
        "by hand": by_hand_ns,
        "difference": (ratio.ratio - 1) * by_hand_ns,
        "share": ratio.ratio - 1,
        "low": ratio.interval.low - 1,
        "high": ratio.interval.high - 1,
    }


def main() -> None:
    print(f"{'framework':<18}{'model':<13}{'by hand':>12}{'adapter adds':>15}{'share':>9}  interval of the share")
    for name, model, found in measured_in_processes(FRAMEWORKS, (TINY, *MODELS), width=13):
        print(
            f"{name:<18}{model:<13}{found['by hand'] / 1e3:>9.2f} us{found['difference'] / 1e3:>+12.2f} us"
            f"{found['share']:>+9.2%}  [{found['low']:+.2%}, {found['high']:+.2%}]"
        )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measured(sys.argv[1], sys.argv[2])))
    else:
        main()
