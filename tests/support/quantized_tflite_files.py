"""LiteRT files of one operator whose values are in steps of whole numbers, written without a converter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tflite_files import GraphWriter


@dataclass(frozen=True)
class InSteps:
    """A value of these sizes, or whole numbers that the file holds; with many scales, along an axis."""

    of: Any  # sizes, or an array
    scale: float | Sequence[float] = 0.05
    zero: int = 0
    dtype: str = "int8"
    axis: int = 0


def _tensor(file: GraphWriter, name: str, value: InSteps) -> int:
    held = value.of if isinstance(value.of, np.ndarray) else None
    shape = held.shape if held is not None else value.of
    place = file.tensor(name, shape, value.dtype, held)
    steps = file.schema.QuantizationParametersT()
    steps.scale = np.atleast_1d(np.asarray(value.scale, np.float32))
    steps.zeroPoint = np.full(len(steps.scale), value.zero, np.int64)
    steps.quantizedDimension = value.axis
    file.graph.tensors[place].quantization = steps
    return place


def any_tensor(file: GraphWriter, name: str, value: Any) -> int:
    """Add a value in steps, an array that the file holds, or the sizes of a float32 value."""
    if isinstance(value, InSteps):
        return _tensor(file, name, value)
    if isinstance(value, np.ndarray):
        return file.tensor(name, value.shape, value.dtype.name, value)
    return file.tensor(name, value)


def is_given(value: Any) -> bool:
    """Whether it is an input of the file, which does not hold it."""
    return not isinstance(value.of if isinstance(value, InSteps) else value, np.ndarray)


def one_operator_in_steps(
    path: Path, kind: str, given: Sequence[Any], result: Any, result_type: str = "float32", **options: Any
) -> Path:
    """Of inputs ``x0``, ``x1``, ... and held values; None is one that is not given. ``result`` may be several."""
    file = GraphWriter()
    places = []
    for number, each in enumerate(given):
        if each is None:
            places.append(-1)
            continue
        places.append(any_tensor(file, f"{'x' if is_given(each) else 'held'}{number}", each))
        if is_given(each):
            file.graph.inputs.append(places[-1])
    results = result if isinstance(result, list) else [result]
    made = [
        any_tensor(file, f"y{number}", each)
        if isinstance(each, InSteps)
        else file.tensor(f"y{number}", each, result_type)
        for number, each in enumerate(results)
    ]
    file.operator(kind, places, made[0], **options)
    file.graph.operators[-1].outputs = made
    file.graph.outputs = made
    return file.written(path)
