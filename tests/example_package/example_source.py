"""Models in files of a format of our own: ``.linear.json``, a matrix that is applied to rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Bundle, Opened, Route, SourceError, SourceKind
from fairlap.models.spec import Tensor
from fairlap.request.fields.source import Source


class LinearFile(SourceKind):
    title = "a linear file"
    suffixes = (".linear.json",)

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        try:
            matrix = np.asarray(json.loads(Path(source.path).read_bytes())["matrix"], np.float32)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{source.text} is damaged: {error}") from None
        rows, columns = matrix.shape
        return Opened(
            inputs=(Tensor("x", (source.batch or 1, rows)),),
            outputs=("y",),
            output_types={"y": "float32"},
            weights={"matrix": matrix},
            forward=_forward,
            routes={"example": Route("native"), "torch": Route(why_not="a linear file is not for PyTorch")},
            reference="the matrix product in float64",
            multiplications=(source.batch or 1) * rows * columns,
        )

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        """In the process of a contestant; what it has depends on the framework, as for a model's package."""
        return _ForExample()


class _ForExample:
    def forward(self, weights: Arrays, inputs: Arrays) -> Mapping[str, Any]:
        return _forward(weights, inputs)


def _forward(weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
    return {"y": inputs["x"] @ weights["matrix"]}
