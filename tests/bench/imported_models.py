"""Imported models against hand-written ones, in the same framework.

    python tests/bench/imported_models.py --models resnet50,bert_base,gpt2_prefill --on torch,jax,tensorflow

Exports a built-in model to ONNX, imports it, compares its outputs with the float64 reference, and times both in turns
in one process. The ratios of medians in docs/reference/onnx-import.md come from here.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.models.onnx_import import Graph, build, load_graph
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from workloads_of_models import workload_of

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
Call = Callable[[], Mapping[str, Any]]


def graph_of(work: Workload) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(work.implementation("onnx").build(work.weights, work.batch).SerializeToString())
        return load_graph(path)


def torch_pair(work: Workload, graph: Graph) -> tuple[Call, Call]:
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    inputs = {name: torch.tensor(array) for name, array in work.inputs.items()}
    names = [tensor.name for tensor in work.spec.outputs]
    implementation = work.implementation("torch")
    module = implementation.build(work.weights)
    own_inputs = dict(inputs)
    if getattr(implementation, "MEMORY_FORMAT", "") == "channels_last":
        module = module.to(memory_format=torch.channels_last)
        own_inputs = {name: each.to(memory_format=torch.channels_last) for name, each in inputs.items()}
    imported = build(graph, "torch")
    weights = imported.prepare(graph.weights)
    written, ours = torch.compile(module), torch.compile(imported, fullgraph=True)

    def call_written() -> Mapping[str, Any]:
        with torch.inference_mode():
            found = written(*own_inputs.values())
        return dict(zip(names, found if isinstance(found, tuple) else (found,), strict=False))

    def call_imported() -> Mapping[str, Any]:
        with torch.inference_mode():
            return ours(weights, inputs)  # type: ignore[no-any-return]

    return call_written, call_imported


def jax_pair(work: Workload, graph: Graph) -> tuple[Call, Call]:
    import jax

    implementation = work.implementation("jax")
    parameters = jax.device_put(implementation.params(work.weights))
    inputs = jax.device_put(dict(work.inputs))
    names = [tensor.name for tensor in work.spec.outputs]
    imported = build(graph, "jax")
    weights = imported.prepare(graph.weights)
    written, ours = jax.jit(implementation.forward), jax.jit(imported)
    return (
        lambda: dict(zip(names, jax.block_until_ready(written(parameters, inputs)), strict=False)),
        lambda: jax.block_until_ready(ours(weights, inputs)),
    )


def tensorflow_pair(work: Workload, graph: Graph, *, xla: bool) -> tuple[Call, Call]:
    import tensorflow as tf

    inputs = {name: tf.constant(array) for name, array in work.inputs.items()}
    names = [tensor.name for tensor in work.spec.outputs]
    module = work.implementation("tensorflow").build(work.weights, tf.float32)
    imported = build(graph, "tensorflow")
    variables = {name: tf.Variable(array) for name, array in imported.prepare(graph.weights).items()}
    written = tf.function(module, autograph=False, jit_compile=xla)
    ours = tf.function(lambda inputs: imported(variables, inputs), autograph=False, jit_compile=xla)
    written, ours = written.get_concrete_function(inputs), ours.get_concrete_function(inputs)
    return lambda: dict(zip(names, written(inputs), strict=False)), lambda: ours(inputs)


PAIRS: Mapping[str, Callable[[Workload, Graph], tuple[Call, Call]]] = {
    "torch:compile": torch_pair,
    "jax": jax_pair,
    "tensorflow:graph": lambda work, graph: tensorflow_pair(work, graph, xla=False),
    "tensorflow:xla": lambda work, graph: tensorflow_pair(work, graph, xla=True),
}


def distance(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Compute the largest relative L2 distance of an output from the reference."""
    return max(
        float(np.linalg.norm(np.asarray(found[name], np.float64) - array) / np.linalg.norm(array))
        for name, array in wanted.items()
        if name in found
    )


def seconds_in_turns(calls: tuple[Call, Call], rounds: int) -> list[list[float]]:
    seconds: list[list[float]] = [[], []]
    for turn in range(rounds):
        for place in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            for value in calls[place]().values():
                np.asarray(value)
            seconds[place].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", default="resnet50,bert_base,gpt2_prefill")
    options.add_argument("--on", default=",".join(PAIRS))
    options.add_argument("--rounds", type=int, default=20)
    chosen = options.parse_args()
    print("| model | framework | written, ms | imported, ms | ratio | error of written | of imported |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for model in chosen.models.split(","):
        work = workload_of(model, batch=find(model).spec.default_batch)
        reference, graph = reference_answers(work), graph_of(work)
        float64 = build(graph, "numpy")
        print(
            f"| {model} | float64 | | | | | {distance(float64(graph.weights, work.inputs), reference):.0e} |",
            flush=True,
        )
        for framework in chosen.on.split(","):
            calls = PAIRS[framework](work, graph)
            errors = [distance(call(), reference) for call in calls]
            seconds_in_turns(calls, 3)
            written, imported = (statistics.median(each) * 1e3 for each in seconds_in_turns(calls, chosen.rounds))
            print(
                f"| {model} | {framework} | {written:.1f} | {imported:.1f} | {imported / written:.2f} |"
                f" {errors[0]:.0e} | {errors[1]:.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
