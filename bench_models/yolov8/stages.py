"""What is around the detector, from a photo's file to the boxes that are kept: for ``--before`` and ``--after``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.yolov8.spec import BINS, IMAGE, STRIDES

Array = npt.NDArray[Any]
GREY = 114
LEAST_SCORE, MOST_OVERLAP = 0.25, 0.7
MOST_CANDIDATES, MOST_KEPT = 1000, 300


def pixels(path: Path) -> Array:
    """Read a photo, and fit it into a grey square."""
    from PIL import Image

    with Image.open(path) as photo:
        scale = IMAGE / max(photo.size)
        width, height = (max(1, round(scale * side)) for side in photo.size)
        resized = photo.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    square = Image.new("RGB", (IMAGE, IMAGE), (GREY, GREY, GREY))
    square.paste(resized, ((IMAGE - width) // 2, (IMAGE - height) // 2))
    return np.ascontiguousarray(np.asarray(square, np.float32).transpose(2, 0, 1)[None] / 255)


def decoded(outputs: Mapping[str, Array]) -> dict[str, Array]:
    """Make corners in pixels of the shares of bins, and scores of the logits of classes."""
    [predictions] = outputs["predictions"]
    logits = predictions[:, : 4 * BINS].reshape(-1, 4, BINS)
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    distances = (shares @ np.arange(BINS, dtype=shares.dtype)) / shares.sum(axis=-1)
    centres, strides = _places()
    corners = np.concatenate([centres - distances[:, :2], centres + distances[:, 2:]], axis=1) * strides
    return {"corners": corners, "scores": 1 / (1 + np.exp(-predictions[:, 4 * BINS :]))}


def kept(candidates: Mapping[str, Array]) -> dict[str, Array]:
    """Keep the best box of each class, and others of it that hardly overlap with a better one."""
    scores = candidates["scores"]
    classes = scores.argmax(axis=1)
    best = scores[np.arange(len(scores)), classes]
    order = np.argsort(-best, kind="stable")
    order = order[best[order] > LEAST_SCORE][:MOST_CANDIDATES]
    # Boxes of one class are moved away from those of all others, so that they never overlap.
    corners = candidates["corners"][order] + 4.0 * IMAGE * classes[order, None]
    found: list[int] = []
    left = np.ones(len(order), bool)
    for place in range(len(order)):
        if left[place] and len(found) < MOST_KEPT:
            found.append(place)
            left[place:] &= _overlaps(corners[place], corners[place:]) <= MOST_OVERLAP
    chosen = order[found]
    return {"corners": candidates["corners"][chosen], "classes": classes[chosen], "scores": best[chosen]}


def _places() -> tuple[Array, Array]:
    """Return the middle of every place in units of its grid, and how many pixels such a unit has."""
    centres, strides = [], []
    for stride in STRIDES:
        side = np.arange(IMAGE // stride, dtype=np.float32) + np.float32(0.5)
        rows, columns = np.meshgrid(side, side, indexing="ij")
        centres.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        strides.append(np.full((len(side) ** 2, 1), stride, np.float32))
    return np.concatenate(centres), np.concatenate(strides)


def _overlaps(one: Array, others: Array) -> Array:
    """Divide the area that one box shares with each other by the area of both."""
    low, high = np.maximum(one[:2], others[:, :2]), np.minimum(one[2:], others[:, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=1)
    areas = (others[:, 2:] - others[:, :2]).prod(axis=1)
    whole: Array = shared / ((one[2:] - one[:2]).prod() + areas - shared + 1e-9)
    return whole
