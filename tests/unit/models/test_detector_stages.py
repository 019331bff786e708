"""What is around a detector: boxes by their definition, and no two kept ones of a class that overlap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fairlap.bench_models.yolov8.spec import BINS, IMAGE, PREDICTED, STRIDES
from fairlap.bench_models.yolov8.stages import LEAST_SCORE, MOST_OVERLAP, decoded, kept, pixels
from hypothesis import given, settings
from hypothesis import strategies as st

PLACES = sum((IMAGE // stride) ** 2 for stride in STRIDES)


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    width, height = (min(one[k + 2], other[k + 2]) - max(one[k], other[k]) for k in (0, 1))
    shared = max(width, 0.0) * max(height, 0.0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return float(shared / (areas - shared)) if areas > shared else 0.0


def test_a_sure_distance_is_its_bin_times_the_stride() -> None:
    predictions = np.full((1, PLACES, PREDICTED), -50.0, np.float32)
    place = (IMAGE // 8) ** 2 + 5 * (IMAGE // 16) + 3  # of the second grid, in the sixth row and the fourth column
    for side, bins in enumerate((1, 2, 3, 4)):
        predictions[0, place, side * BINS + bins] = 50.0
    predictions[0, place, 4 * BINS + 7] = 0.0
    found = decoded({"predictions": predictions})
    assert found["corners"][place] == pytest.approx([16 * (3.5 - 1), 16 * (5.5 - 2), 16 * (3.5 + 3), 16 * (5.5 + 4)])
    assert found["scores"][place, 7] == pytest.approx(0.5)
    assert kept(found)["classes"].tolist() == [7]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_kept_boxes_of_a_class_hardly_overlap_and_each_other_one_does_with_a_better_one(
    seed: int, classes: int
) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 30, (40, 2))
    corners = np.concatenate([corners, corners + rng.uniform(10, 30, (40, 2))], axis=1)
    scores = rng.uniform(0, 1, (40, classes))
    found = kept({"corners": corners, "scores": scores})
    boxes, labels, best = found["corners"], found["classes"], found["scores"]
    assert all(best[:-1] >= best[1:])
    for one in range(len(boxes)):
        others = [k for k in range(one) if labels[k] == labels[one]]
        assert all(overlap(boxes[one], boxes[k]) <= MOST_OVERLAP + 1e-6 for k in others)
    for box, own in zip(corners, scores, strict=True):
        better = [k for k in range(len(boxes)) if labels[k] == own.argmax() and best[k] >= own.max()]
        is_kept = any(np.array_equal(box, boxes[k]) for k in better)
        assert is_kept or own.max() <= LEAST_SCORE or any(overlap(box, boxes[k]) > MOST_OVERLAP - 1e-6 for k in better)


def test_a_photo_is_fitted_into_a_grey_square(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")
    image.new("RGB", (64, 32), (255, 0, 0)).save(tmp_path / "red.png")
    found = pixels(tmp_path / "red.png")
    assert found.shape == (1, 3, IMAGE, IMAGE)
    assert found.dtype == np.dtype(np.float32)
    assert found[0, :, IMAGE // 2, IMAGE // 2] == pytest.approx([1, 0, 0])
    assert found[0, :, 0, 0] == pytest.approx([114 / 255] * 3)
