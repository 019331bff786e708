"""PSNR and SSIM are those of scikit-image, which agrees with their formulas by hand."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.metrics.metric import Output
from fairlap.models.task_metrics import NotFinite, parts_of, require_labels, score_of, value_of
from machine_marks import needs

needs("skimage")

RNG = np.random.default_rng(3)
LABELS = RNG.uniform(size=(6, 3, 16, 20))
OUTPUTS = np.clip(LABELS + RNG.normal(0, 0.1, LABELS.shape), 0, 1)


def value(metric: str, outputs: np.ndarray, labels: np.ndarray) -> float:
    output = Output("image", outputs.shape, str(outputs.dtype))
    require_labels(metric, labels, len(labels), [output])
    halves = [slice(0, 3), slice(3, None)]
    return value_of(metric, [parts_of(metric, [outputs[half]], labels[half]) for half in halves])


def by_hand(one: np.ndarray, other: np.ndarray) -> float:
    """Wang and others' formula in one channel, with a Gaussian of eleven by eleven, where the window fits."""
    side = np.exp(-0.5 * (np.arange(-5, 6) / 1.5) ** 2)
    window = np.outer(side, side) / side.sum() ** 2
    found = []
    for top in range(one.shape[0] - 10):
        for left in range(one.shape[1] - 10):
            a, b = (each[top : top + 11, left : left + 11] for each in (one, other))
            mean_a, mean_b = (window * a).sum(), (window * b).sum()
            var_a, var_b = (window * a * a).sum() - mean_a**2, (window * b * b).sum() - mean_b**2
            both = (window * a * b).sum() - mean_a * mean_b
            c1, c2 = 0.01**2, 0.03**2
            found.append(
                (2 * mean_a * mean_b + c1) * (2 * both + c2) / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
            )
    return float(np.mean(found))


def test_ssim_is_that_of_the_paper() -> None:
    images = [
        np.mean([by_hand(a, b) for a, b in zip(*pair, strict=True)]) for pair in zip(LABELS, OUTPUTS, strict=True)
    ]
    assert value("ssim", OUTPUTS, LABELS) == pytest.approx(np.mean(images), abs=1e-12)


def test_ssim_does_not_depend_on_the_layout_and_scales_with_the_range() -> None:
    expected = value("ssim", OUTPUTS, LABELS)
    last = [each.transpose(0, 2, 3, 1) for each in (OUTPUTS, LABELS)]
    assert value("ssim", *last) == pytest.approx(expected)
    assert value("ssim@255", OUTPUTS * 255, LABELS * 255) == pytest.approx(expected)
    assert value("ssim", OUTPUTS[:, 0], LABELS[:, 0]) == pytest.approx(value("ssim", OUTPUTS[:, :1], LABELS[:, :1]))


def test_psnr_is_ten_decibels_for_each_tenth_of_the_square_error() -> None:
    by_image = -10 * np.log10(((OUTPUTS - LABELS) ** 2).mean(axis=(1, 2, 3)))
    assert value("psnr", OUTPUTS, LABELS) == pytest.approx(by_image.mean(), abs=1e-12)
    assert value("psnr@255", OUTPUTS * 255, LABELS * 255) == pytest.approx(by_image.mean())
    found = score_of("psnr", [parts_of("psnr", [OUTPUTS], LABELS)])
    assert found.low is not None
    assert found.high is not None
    assert by_image.min() < found.low < found.value < found.high < by_image.max()


@pytest.mark.parametrize(
    ("metric", "shape", "labels"),
    [
        ("psnr", (2, 5, 16, 16), (2, 5, 16, 16)),  # five channels
        ("psnr", (2, 3, 16, 16), (2, 3, 16, 15)),
        ("ssim", (2, 3, 10, 16), (2, 3, 10, 16)),  # smaller than a window
        ("psnr@0", (2, 3, 16, 16), (2, 3, 16, 16)),
    ],
)
def test_other_shapes_are_refused(metric: str, shape: tuple[int, ...], labels: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        require_labels(metric, np.zeros(labels), 2, [Output("image", shape, "float32")])
    assert refused.value.code == "E_METRIC"


def test_labels_outside_of_the_range_and_equal_images_have_no_psnr() -> None:
    with pytest.raises(InvalidRequest, match="0 to 1"):
        value("psnr", OUTPUTS * 255, LABELS * 255)
    with pytest.raises(InvalidRequest, match="no value"):
        score_of("psnr", [parts_of("psnr", [LABELS], LABELS)])
    with pytest.raises(NotFinite):
        parts_of("psnr", [LABELS * np.nan], LABELS)
