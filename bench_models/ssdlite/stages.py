"""What makes boxes of the detector's predictions, for ``--after``; the stages of ``yolov8`` read photos and choose.

Boxes are those of SSD: of each place some of several shapes, which the predictions move and stretch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.ssdlite.spec import IMAGE

Array = npt.NDArray[Any]
SIDES = (20, 10, 5, 3, 2, 1)  # of the grids
SMALLEST, LARGEST = 0.2, 0.95  # boxes of the first and the last grid, as shares of the image
SHAPES = (2, 3)  # width over height, and the other way round
MOVED, STRETCHED = 10.0, 5.0  # what predictions are divided by


def decoded(outputs: Mapping[str, Array]) -> dict[str, Array]:
    """Make corners in pixels and scores of the classes, without that of the background, the first one."""
    [predictions] = outputs["predictions"]
    centres, sizes = boxes()
    middle = centres + predictions[:, :2] / MOVED * sizes
    half = sizes * np.exp(predictions[:, 2:4] / STRETCHED) / 2
    logits = predictions[:, 4:]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    scores = (shares / shares.sum(axis=1, keepdims=True))[:, 1:]
    corners = np.concatenate([middle - half, middle + half], axis=1) * np.float32(IMAGE)
    return {"corners": np.clip(corners, 0, IMAGE), "scores": scores}


@cache
def boxes() -> tuple[Array, Array]:
    """Return the centre and the size of every box before it is moved, as shares of the image."""
    scales = [SMALLEST + (LARGEST - SMALLEST) * place / (len(SIDES) - 1) for place in range(len(SIDES))] + [1.0]
    centres, sizes = [], []
    for side, (scale, next_one) in zip(SIDES, pairwise(scales), strict=True):
        shapes = [(scale, scale), (math.sqrt(scale * next_one),) * 2]
        for shape in SHAPES:
            root = math.sqrt(shape)
            shapes += [(scale * root, scale / root), (scale / root, scale * root)]
        rows, columns = np.meshgrid(*[(np.arange(side) + 0.5) / side] * 2, indexing="ij")
        places = np.stack([columns.ravel(), rows.ravel()], axis=1)
        centres.append(np.repeat(places, len(shapes), axis=0))
        sizes.append(np.tile(np.minimum(shapes, 1.0), (side**2, 1)))
    return np.concatenate(centres).astype(np.float32), np.concatenate(sizes).astype(np.float32)
