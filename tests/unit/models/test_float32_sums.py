"""What float32 may lose in sums and products, compared with what it does lose in several orders of summation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.models.checks.float32_products import lost_in_product
from fairlap.models.checks.float32_sums import ROUNDOFF, lost_in_sum, moved
from fairlap.models.onnx_import.libraries.base import Windows
from fairlap.models.onnx_import.libraries.lossy_sums import LossySums
from orders_of_summation import LENGTHS, NUMBERS, ORDERS

TIMES = 4.0  # as answers are allowed
PLAIN = ("a third", "a tenth", "a white photo, normalised", "nearly one", "minus a third", "half white")
SIDE = 96


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("kind", NUMBERS)
def test_a_sum_loses_no_more_in_any_order(kind: str, count: int) -> None:
    numbers = NUMBERS[kind](count)
    exact = float(numbers.sum(dtype=np.float64))
    (lost,) = lost_in_sum(numbers.astype(np.float64), (0,))
    for order in ORDERS:
        assert abs(order(numbers) - exact) <= TIMES * lost


@pytest.mark.parametrize("level", [200.0, 100.0, 37.0])
def test_a_sum_of_small_whole_numbers_loses_its_last_rounding_only(level: float) -> None:
    photo = np.full((2, 3, 224, 224), level)
    lost = lost_in_sum(photo, (2, 3))
    assert lost.shape == (2, 3, 1, 1)
    np.testing.assert_allclose(lost, ROUNDOFF * level * 224 * 224)


def test_a_sum_that_is_exact_in_one_order_by_chance_is_not_taken_for_exact() -> None:
    (lost,) = lost_in_sum(np.array([2.0**27, -(2.0**27), 1.0]), (0,))
    assert TIMES * lost >= 1.0


def test_of_different_numbers_of_one_sign_it_is_a_quarter_of_the_root_of_their_count() -> None:
    numbers = NUMBERS["different"](9_216).astype(np.float64)
    (lost,) = lost_in_sum(numbers, (0,))
    assert 24 <= lost / numbers.sum() / ROUNDOFF <= 48


@pytest.mark.parametrize("sign", [0.0, 1.0], ids=["both signs", "one sign"])
def test_a_product_usually_loses_what_one_sum_after_the_other_loses(sign: float) -> None:
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal(shape, np.float32) for shape in ((8, 512), (512, 64)))
    left, right = (np.abs(each) if sign else each for each in (left, right))
    terms = left[:, :, None] * right[None]
    found = np.add.accumulate(terms, axis=1)[:, -1]
    exact = left.astype(np.float64) @ right.astype(np.float64)
    lost = lost_in_product(left.astype(np.float64), right.astype(np.float64), exact)
    assert 0.5 <= np.sqrt(np.mean((found - exact) ** 2) / np.mean(lost**2)) <= 1.2


@pytest.mark.parametrize("count", [100, 9_216, 100_000])
@pytest.mark.parametrize("kind", PLAIN)
def test_a_sum_that_is_written_as_a_product_with_ones_loses_no_more_in_any_order(kind: str, count: int) -> None:
    numbers = NUMBERS[kind](count)
    exact = float(numbers.sum(dtype=np.float64))
    both = np.stack([numbers, np.random.default_rng(6).random(count, np.float32)]).astype(np.float64)
    lost = lost_in_product(both, np.ones((count, 1)), both @ np.ones((count, 1)))
    for order in ORDERS:
        assert abs(order(numbers) - exact) <= TIMES * lost[0, 0]
    assert lost[1, 0] == lost_in_product(both[1:], np.ones((count, 1)), both[1:] @ np.ones((count, 1)))[0, 0]


def _summed(kind: str, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the sum over each channel in float64, and as it is moved by what float32 may lose."""
    library, ones = LossySums(), np.ones(image.shape[2:])
    exact = image.sum(axis=(2, 3))
    if kind == "einsum":
        return exact, np.asarray(library.einsum("bchw,hw->bc", image, ones))
    kernel = np.repeat(ones[None, None], image.shape[1], axis=0)
    moved_by = library.convolve(image, kernel, None, Windows((1, 1), [(0, 0), (0, 0)], (1, 1), image.shape[1]))
    return exact, np.asarray(moved_by)[..., 0, 0]


@pytest.mark.parametrize("kind", ["einsum", "convolution"])
def test_a_mean_over_a_plain_photo_may_be_a_convolution_or_an_einsum(kind: str) -> None:
    plain = NUMBERS["a white photo, normalised"](SIDE * SIDE)
    exact, moved_by = _summed(kind, np.broadcast_to(plain.reshape(1, 1, SIDE, SIDE), (1, 3, SIDE, SIDE)).astype(float))
    off = max(abs(order(plain) - exact[0, 0]) for order in ORDERS)
    assert (off <= TIMES * np.abs(moved_by - exact)).all()
    drawn = np.random.default_rng(7).random((1, 3, SIDE, SIDE), np.float32).astype(np.float64)
    exact, moved_by = _summed(kind, drawn)
    assert (np.abs(moved_by - exact) <= 2 * ROUNDOFF * SIDE / 4 * np.abs(exact)).all()


def test_products_of_small_whole_numbers_lose_nothing() -> None:
    left, right = (np.random.default_rng(1).integers(-128, 128, shape) * 1.0 for shape in ((4, 50), (50, 6)))
    assert not lost_in_product(left, right, left @ right).any()
    assert lost_in_product(left + 0.5, right, left @ right).all()
    assert lost_in_product(1e4 * left, right, 1e4 * left @ right).all()


@pytest.mark.parametrize(
    ("left", "right"), [((5,), (5, 3)), ((3, 5), (5,)), ((5,), (5,)), ((2, 1, 3, 5), (4, 5, 6))], ids=str
)
def test_products_of_vectors_and_of_stacks_lose_as_those_of_matrices(
    left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    product = 0.5 * np.ones(left) @ np.ones(right)
    lost = lost_in_product(0.5 * np.ones(left), np.ones(right), np.asarray(product))
    np.testing.assert_allclose(lost, np.full(np.shape(product), ROUNDOFF / 2 * math.hypot(5 / 3, math.sqrt(5) * 5 / 4)))


def test_equal_numbers_are_moved_alike_and_others_either_way() -> None:
    values = np.repeat(np.random.default_rng(2).random(1_000), 3).reshape(1_000, 3)
    by = moved(values, np.full(values.shape, 0.5), key=77) - values
    np.testing.assert_allclose(np.abs(by), 0.5)
    assert (by == by[:, :1]).all()
    assert abs(by.mean()) < 0.06
    assert not np.allclose(by, moved(values, np.full(values.shape, 0.5), key=79) - values)


def test_what_is_not_finite_stays() -> None:
    values = np.array([np.inf, -np.inf, np.nan, 1.0])
    np.testing.assert_array_equal(moved(values, np.array([1.0, np.inf, 1.0, np.nan]), key=1), values)
    assert np.isfinite(moved(np.ones(2), np.array([np.inf, np.nan]), key=1)).all()
