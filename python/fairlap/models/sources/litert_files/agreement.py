"""Whether each operator in ONNX, given what LiteRT's own kernels computed before it, answers what these answer.

Kernels in steps round in fixed-point numbers, and ONNX in real ones: a step more or less in one operator is right, and
may be many in the answers of a deep model. So each operator is compared alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.subgraphs import names_read_by
from fairlap.models.sources.litert_files.onnx_graph import OnnxGraph, Untranslated
from fairlap.models.sources.litert_files.onnx_of_litert import Translator, model_of, needed, read_by
from fairlap.models.sources.litert_files.steps import IN_STEPS, Array
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph
from fairlap.models.sources.onnx_graphs.imported_reference import imported_reference

_FILE = "operators.onnx"
_NEARLY_ALL = 0.99  # of the results of an operator are as near as this:
_STEPS_OF_8_BITS = (1, 4)  # and all are nearer than the second
_STEPS_OF_16_BITS = (16, 64)  # of which LiteRT's softmax was off by up to 11
_OF_THE_LARGEST = (1e-4, 1e-2)  # of real numbers; values near to an edge may take other dynamic steps


@dataclass(frozen=True)
class Distance:
    """How far results of one operator are from LiteRT's: in steps, or as shares of its largest number."""

    kind: str
    dtype: str  # of its results
    off: Array

    @property
    def in_steps(self) -> bool:
        return self.dtype in IN_STEPS

    @property
    def is_small(self) -> bool:
        near, far = _OF_THE_LARGEST
        if self.in_steps:
            near, far = _STEPS_OF_16_BITS if self.dtype == "int16" else _STEPS_OF_8_BITS
        return bool((self.off <= far).all() and np.mean(self.off <= near) >= _NEARLY_ALL) if self.off.size else True

    def __str__(self) -> str:
        unit = "steps" if self.in_steps else "of the largest number"
        return f"results of {self.kind} are off from LiteRT's by up to {self.off.max():.2g} {unit}"


def require_agreement(found: Sequence[Distance]) -> str:
    """Raise Untranslated for the farthest operator that is too far, else sum up how near they are."""
    far = [each for each in found if not each.is_small]
    if far:
        raise Untranslated(str(max(far, key=lambda each: float(each.off.max()))))
    steps = np.concatenate([each.off for each in found if each.in_steps] or [np.zeros(0)])
    if not steps.size:
        return "each operator agrees"
    return f"each operator agrees, {100 * np.mean(steps == 0):.4g} % of {steps.size:,} results in the same step"


def distances(graph: TfliteGraph, values: Mapping[int, Array], scratch: Path) -> list[Distance]:
    """Compare each operator of the main graph. ``values`` are what LiteRT computed, by place."""
    translator, main = Translator(graph), graph.main
    places = [main.place_of(tensor) for tensor in graph.outputs.values()]
    operators, results = needed(main, places), {}
    made = [place for operator in operators for place in operator.results]
    names = {main.place_of(tensor): f"input {name}" for name, tensor in graph.inputs.items()}
    onnx = OnnxGraph({*names.values(), *(f"{each} {place}" for each in ("given", "result") for place in made)})
    wanted = {*places, *(place for operator in operators for place in read_by(operator))}
    for operator in operators:
        found = translator.translated(main, operator, names, onnx)
        for place, name in zip(operator.results, found, strict=True):
            results[place] = onnx.node("Identity", [name], [f"result {place}"])
            names[place] = f"given {place}"
    read = {name for node in onnx.nodes for name in names_read_by(node)}
    given = {place: name for place, name in names.items() if name in read}
    if missing := [place for place in (*given, *wanted.intersection(results)) if place not in values]:
        raise Untranslated(f"LiteRT does not keep {main.name_of(missing[0])}")
    model = model_of(
        onnx,
        {name: translator.kind(main, place) for place, name in given.items()},
        {name: translator.kind(main, place) for place, name in results.items()},
    )
    (scratch / _FILE).write_bytes(model.SerializeToString())
    loaded, forward = imported_reference(scratch / _FILE)
    (scratch / _FILE).unlink()
    answers = forward(_wide(loaded.weights), _wide({name: values[place] for place, name in given.items()}))
    return [
        _distance(operator.kind, main.type_of(place), answers[results[place]], values[place])
        for operator in operators
        for place in operator.results
        if place in wanted
    ]


def _wide(arrays: Arrays) -> dict[str, Array]:
    return {name: each.astype(np.float64) if each.dtype == np.float32 else each for name, each in arrays.items()}


def _distance(kind: str, dtype: str, found: Any, own: Array) -> Distance:
    if found.shape != own.shape:
        raise Untranslated(f"{kind} is {list(found.shape)} in ONNX and {list(own.shape)} in LiteRT")
    exact = own.astype(np.float64)
    off = np.abs(np.asarray(found).astype(np.float64) - exact).reshape(-1)
    return Distance(kind, dtype, off if dtype in IN_STEPS else off / (np.abs(exact).max(initial=0.0) or 1.0))


def why_other_answers(translated: Arrays, own: Arrays, agrees: float) -> str:
    """Why they are not of the same model; empty where they are within a share of the largest number."""
    for name, array in own.items():
        if translated[name].shape != array.shape:
            return f"{name} is {list(translated[name].shape)} in ONNX and {list(array.shape)} in LiteRT"
        off, largest = np.abs(translated[name] - array).max(initial=0.0), np.abs(array).max(initial=0.0)
        if not off <= agrees * largest:
            return f"{name} is off by {off:.1e} in ONNX, and its largest number is {largest:.1e}"
    return ""
