"""References of operations on which digits are lost, against mpmath at many digits and against IEEE 754."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.operations.hard import HARD_KINDS
from fairlap.models.operations.kinds import operation_named
from fairlap.models.operations.listed import listed_operations
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload


def work_of(name: str) -> Workload:
    found = find(name)
    weights, inputs = draw_weights(found.spec, 1), draw_inputs(found.spec, 1, 2)
    return Workload(found.spec, found.package, 1, "infer", "fp32", weights, inputs)


def answer_of(work: Workload) -> Any:
    return reference_answers(work)["result"]


@pytest.mark.parametrize("rows", [4, 8, 9])
def test_a_system_of_the_hilbert_matrix_is_solved_to_all_digits(rows: int) -> None:
    """The condition number of nine rows is 5e11, so that float64 alone would leave five digits."""
    work = work_of(f"hard-solve-hilbert-n{rows}")
    with mpmath.workdps(60):
        matrix = mpmath.matrix(work.weights["a"].astype(float).tolist())
        columns = [mpmath.lu_solve(matrix, mpmath.matrix(side.astype(float).tolist())) for side in work.inputs["b"].T]
        exact = np.array([[float(each) for each in column] for column in columns]).T
    np.testing.assert_allclose(answer_of(work), exact, rtol=1e-15)


def test_a_graded_system_is_solved_beyond_the_digits_of_float32() -> None:
    work = work_of("hard-solve-graded-n12-g6")
    with mpmath.workdps(60):
        matrix = mpmath.matrix(work.weights["a"].astype(float).tolist())
        exact = mpmath.lu_solve(matrix, mpmath.matrix(work.inputs["b"][:, 0].astype(float).tolist()))
        np.testing.assert_allclose(answer_of(work)[:, 0], [float(each) for each in exact], rtol=1e-10)


@pytest.mark.parametrize("name", ["hard-sum-r2-n301-c5", "hard-dot-r2-n300-c5"])
def test_sums_are_those_without_rounding(name: str) -> None:
    work = work_of(name)
    with mpmath.workdps(60):
        rows = [[[mpmath.mpf(float(each)) for each in row] for row in array] for array in work.inputs.values()]
        products = [[mpmath.fprod(each) for each in zip(*row, strict=True)] for row in zip(*rows, strict=True)]
        exact = [float(mpmath.fsum(row)) for row in products]
    np.testing.assert_allclose(answer_of(work), exact, rtol=1e-15)


def test_softmax_log_sum_exp_and_layer_norm_are_those_of_mpmath() -> None:
    softmax, total, norm = map(
        work_of, ("hard-softmax-r2-n9-s100", "hard-logsumexp-r2-n9-o1000", "hard-layernorm-r2-n9-o1000")
    )
    with mpmath.workdps(60):

        def rows(work: Workload) -> list[list[Any]]:
            return [[mpmath.mpf(float(each)) for each in row] for row in work.inputs["numbers"]]

        shares = [[mpmath.exp(each) / mpmath.fsum(map(mpmath.exp, row)) for each in row] for row in rows(softmax)]
        logs = [mpmath.log(mpmath.fsum(map(mpmath.exp, row))) for row in rows(total)]
        normed = []
        for row in rows(norm):
            mean = mpmath.fsum(row) / len(row)
            spread = mpmath.sqrt(mpmath.fsum((each - mean) ** 2 for each in row) / len(row) + mpmath.mpf("1e-5"))
            normed.append([float((each - mean) / spread) for each in row])
        np.testing.assert_allclose(answer_of(softmax), np.array(shares, float), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(answer_of(total), np.array(logs, float), rtol=1e-15)
    np.testing.assert_allclose(answer_of(norm), normed, rtol=1e-11)


def test_special_values_are_those_of_ieee_754() -> None:
    largest, shares, ordered = (answer_of(work_of(f"hard-special-{what}-r6-n5")) for what in ("max", "softmax", "sort"))
    plain, with_nan, with_inf, with_minus_inf, minus_inf_alone, all_kinds = range(6)
    assert np.isnan(largest[[with_nan, all_kinds]]).all()  # maximum of IEEE 754-2019
    assert (largest[with_inf], largest[minus_inf_alone]) == (math.inf, -math.inf)
    assert np.isfinite(largest[[plain, with_minus_inf]]).all()
    assert [int(np.isnan(row).sum()) for row in shares] == [0, 5, 5, 0, 5, 5]  # inf - inf is NaN
    assert (shares[with_minus_inf] == 0).sum() == 1
    assert np.isnan(ordered[with_nan, -1])
    assert ordered[with_inf, -1] == math.inf
    assert (ordered[all_kinds, 0], ordered[all_kinds, -2]) == (-math.inf, math.inf)


def test_every_hard_kind_is_listed_and_found_by_its_name() -> None:
    listed = [each.operation for each in listed_operations() if "stability" in each.lists]
    assert {type(each) for each in listed} == set(HARD_KINDS)
    assert all(operation_named(each.name) == each for each in listed)
