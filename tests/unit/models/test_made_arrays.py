"""Arrays that are hard to compute with are as hard as they claim: by closed forms and by sums without rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.models.made_arrays import MOST_OF_HILBERT, hilbert_multiple, made
from fairlap.models.spec import Hardness, Made

SMALLEST_NORMAL = np.finfo(np.float32).tiny


def drawn(how: Hardness, shape: tuple[int, ...], amount: float = 0.0, seed: int = 1) -> npt.NDArray[np.float32]:
    return made(Made(how, amount), shape, np.random.default_rng(seed))


def inverse_of_hilbert(rows: int) -> list[list[int]]:
    """Return the closed form (Choi, American Mathematical Monthly 90, 1983), whose entries are integers."""
    sizes = range(1, rows + 1)
    return [
        [
            (-1) ** (i + j)
            * (i + j - 1)
            * math.comb(rows + i - 1, rows - j)
            * math.comb(rows + j - 1, rows - i)
            * math.comb(i + j - 2, i - 1) ** 2
            for j in sizes
        ]
        for i in sizes
    ]


@pytest.mark.parametrize("rows", range(1, MOST_OF_HILBERT + 1))
def test_a_hilbert_matrix_times_its_inverse_in_closed_form_is_a_multiple_of_one(rows: int) -> None:
    matrix = [[Fraction(float(each)) for each in line] for line in drawn("hilbert", (rows, rows))]
    inverse = inverse_of_hilbert(rows)
    product = [[sum(matrix[i][k] * inverse[k][j] for k in range(rows)) for j in range(rows)] for i in range(rows)]
    assert product == [[hilbert_multiple(rows) * (i == j) for j in range(rows)] for i in range(rows)]


def test_a_hilbert_matrix_that_float32_does_not_hold_is_refused() -> None:
    assert hilbert_multiple(MOST_OF_HILBERT) < 2**24 <= hilbert_multiple(MOST_OF_HILBERT + 1)
    for shape in ((10, 10), (3, 4), (2, 2, 2)):
        with pytest.raises(ValueError, match="Hilbert"):
            drawn("hilbert", shape)


@pytest.mark.parametrize("amount", [1, 2, 3, 5])
@pytest.mark.parametrize("numbers", [2, 101, 4000])
def test_a_cancelling_sum_has_the_condition_number_that_it_claims(amount: int, numbers: int) -> None:
    for row in drawn("cancelling", (3, numbers), amount).astype(np.float64):
        ratio = math.fsum(np.abs(row)) / abs(math.fsum(row))
        odd = numbers % 2  # the number without an opposite may be most of the sum
        assert ratio <= 1.2 * 10**amount
        assert odd or ratio >= 0.8 * 10**amount
    assert (drawn("cancelling", (3, numbers)) > 0).all()


def test_a_product_of_opposed_and_repeated_rows_cancels() -> None:
    a, b = drawn("opposed", (4, 1001)).astype(np.float64), drawn("nearly_repeated", (4, 1001), 3, seed=2)
    whole, left = np.sum(np.abs(a * b), -1), np.abs(np.sum(a * b, -1))
    assert (whole > 1e3 * left).all()
    assert (left > 0).all()


def test_graded_columns_fall_by_the_powers_of_ten() -> None:
    sizes = np.abs(drawn("graded", (4000, 5), 4)).mean(0)
    np.testing.assert_allclose(sizes / sizes[0], 10.0 ** -np.arange(5), rtol=0.1)


def test_half_of_subnormal_rows_is_below_the_smallest_normal_number_and_so_are_their_halves() -> None:
    values = drawn("subnormal", (2, 10))
    assert (values[:, :5] / 2 >= SMALLEST_NORMAL).all()
    assert ((values[:, 5:] > 0) & (values[:, 5:] < SMALLEST_NORMAL)).all()


def test_rows_of_specials_have_in_turn_what_they_claim() -> None:
    rows = drawn("specials", (12, 8))
    kinds = [(np.isnan(row).sum(), np.isposinf(row).sum(), np.isneginf(row).sum()) for row in rows]
    assert kinds == 2 * [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 8), (1, 1, 1)]


def test_matrices_are_symmetric_and_definite() -> None:
    symmetric, definite = drawn("symmetric", (6, 6)), drawn("definite", (6, 6), 0.5)
    assert np.array_equal(symmetric, symmetric.T)
    assert np.linalg.eigvalsh(definite.astype(np.float64)).min() > 0.49
