"""How far right and wrong conversions of built-in models are from what is allowed.

    python tests/bench/conversion_margins.py
    python tests/bench/conversion_margins.py --models bert_base --print

Each model is opened as a user's ONNX file. Right conversions are the frameworks that race it; wrong ones are graphs
that were changed in one way (tests/support/wrong_conversions.py), computed by ONNX Runtime. Cells are the distance of
the element that is furthest off, divided by what is allowed there: more than 1 is disqualified. The table in
docs/explanation/equal-work.md comes from here. Exit status 1 if a right one is above 1 or a wrong one below.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.models.onnx_import import Graph, build, load_graph
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.source import Source
from fairlap.request.work import Work
from generated_page import DOCS, write_part
from margins import by_onnxruntime, by_openvino, share_of_tolerance
from workloads_of_models import workload_of
from wrong_conversions import CHANGES, wrong_conversions

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
PAGE = DOCS / "explanation" / "equal-work.md"
Answers = Mapping[str, Any]
Inputs = Mapping[str, np.ndarray]


def by_torch(graph: Graph, inputs: Inputs, *, bfloat16: bool = False) -> Answers:
    import torch

    model = build(graph, "torch")
    weights, given = model.prepare(graph.weights), {name: torch.from_numpy(each) for name, each in inputs.items()}
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        return {name: each.float().numpy() for name, each in model(weights, given).items()}


def by_jax(graph: Graph, inputs: Inputs) -> Answers:
    import jax

    model = build(graph, "jax")
    return jax.jit(model)(model.prepare(graph.weights), dict(inputs))  # type: ignore[no-any-return]


def by_tensorflow(graph: Graph, inputs: Inputs) -> Answers:
    import tensorflow as tf

    model = build(graph, "tensorflow")
    weights = model.prepare(graph.weights)
    given = {name: tf.constant(each) for name, each in inputs.items()}
    return tf.function(lambda: model(weights, given), autograph=False, jit_compile=True)()  # type: ignore[no-any-return]


IMPORTED: Mapping[str, Callable[[Graph, Inputs], Answers]] = {
    "PyTorch": by_torch,
    "JAX": by_jax,
    "TensorFlow with XLA": by_tensorflow,
}


def right(model: Any, graph: Graph, inputs: Inputs) -> Iterator[tuple[str, Answers]]:
    yield "ONNX Runtime", by_onnxruntime(model, inputs)
    yield "OpenVINO", by_openvino(model, inputs)
    for name, run in IMPORTED.items():
        yield name, run(graph, inputs)


def wrong(model: Any, graph: Graph, inputs: Inputs) -> Iterator[tuple[str, Answers]]:
    yield "computed in bfloat16 (PyTorch's autocast)", by_torch(graph, inputs, bfloat16=True)
    for name, changed in wrong_conversions(model):
        yield name, by_onnxruntime(changed, inputs)


def margins(name: str, folder: Path) -> tuple[dict[str, float], dict[str, float], Materials]:
    work = workload_of(name, batch=1)
    file = folder / f"{name}.onnx"
    file.write_bytes(work.implementation("onnx").build(work.weights, 1).SerializeToString())
    arrays: dict[str, Any] = dict(work.inputs)
    np.savez(folder / "inputs.npz", **arrays)
    source = Source(file.name, str(file), str(folder), inputs=str(folder / "inputs.npz"))
    materials = materials_for(Work(file.name, 1, source=source), 0)
    graph, inputs = load_graph(file), {key: np.array(each) for key, each in materials.workload("inputs").inputs.items()}
    model = read(file)
    found = [
        {how: share_of_tolerance(materials, answers) for how, answers in each(model, graph, inputs)}
        for each in (right, wrong)
    ]
    return found[0], found[1], materials


def read(file: Path) -> Any:
    import onnx

    return onnx.load(file)


def cell(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2g}" if value < 100 else f"{value:,.0f}"


def table(found: Mapping[str, Mapping[str, float]], first: str) -> list[str]:
    """Format a row for each conversion, and a column for each model."""
    rows = list(dict.fromkeys(how for own in found.values() for how in own))
    rows.sort(key=lambda how: list(CHANGES).index(how) if how in CHANGES else -1)
    lines = [f"| {first} | {' | '.join(found)} |", f"| --- {'| ---: ' * len(found)}|"]
    return lines + [f"| {how} | {' | '.join(cell(own.get(how)) for own in found.values())} |" for how in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description="Margins of right and wrong conversions.")
    parser.add_argument("--models", default="resnet50,bert_base,gpt2_prefill")
    parser.add_argument("--print", action="store_true", help="leave the documentation as it is")
    options = parser.parse_args()
    rights: dict[str, dict[str, float]] = {}
    wrongs: dict[str, dict[str, float]] = {}
    for name in options.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["FAIRLAP_CACHE"] = f"{folder}/cache"
            rights[name], wrongs[name], materials = margins(name, Path(folder))
        allowed = {output: each.absolute for output, each in materials.output_tolerances.items()}
        print(f"{name}: {allowed}\n{rights[name]}\n{wrongs[name]}", file=sys.stderr, flush=True)
    text = "\n".join([*table(rights, "right conversion"), "", *table(wrongs, "wrong conversion")])
    print(text)
    if not options.print:
        write_part(PAGE, "margins", text)
    missed = [value for own in rights.values() for value in own.values() if not value <= 1]
    missed += [value for own in wrongs.values() for value in own.values() if not value > 1]
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
