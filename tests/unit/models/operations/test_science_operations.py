"""Residuals accept every right answer and no wrong one, counts are those of loops by hand, transforms are analytic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.models.arrays import Arrays
from fairlap.models.call_cost import call_cost
from fairlap.models.draw import draw_inputs, draw_weights, rounded_to_bfloat16
from fairlap.models.operations.kinds import operation_named
from fairlap.models.operations.linear_algebra import LINEAR_ALGEBRA_KINDS
from fairlap.models.operations.listed import listed_operations
from fairlap.models.operations.science import SCIENCE_KINDS, Science, SparseProduct
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.request.work import Work

Array = npt.NDArray[Any]
ROUNDOFF = 2.0**-24
NAMES = (
    *("solve-n40-r3", "qr-m40-n24", "svd-m40-n24", "eigh-n40", "cholesky-n40", "fft-n60-b3", "fft2-h8-w10-b2"),
    *("fft3-d4-h6-w10", "spmv-n64-z5", "random-uniform-n5000", "random-normal-n5000", "sort-r3-n50"),
    "segment-sum-n300-d4-s20",
)
LARGE = ("solve-n200-r1", "cholesky-n200", "svd-m96-n96")


def work_of(name: str, seed: int = 2) -> Workload:
    found = find(name)
    weights, inputs = draw_weights(found.spec, 1), draw_inputs(found.spec, 1, seed)
    return Workload(found.spec, found.package, 1, "infer", "fp32", weights, inputs)


def right_answer(work: Workload, seed: int = 0) -> dict[str, Array]:
    """In float32, by NumPy."""
    inputs, rng = work.inputs, np.random.default_rng(seed)
    match work.spec.name.partition("-")[0]:
        case "qr":
            found: Any = dict(zip("qr", np.linalg.qr(inputs["a"]), strict=True))
        case "svd":
            found = dict(zip(("u", "s", "vt"), np.linalg.svd(inputs["a"], full_matrices=False), strict=True))
        case "eigh":
            found = dict(zip(("values", "vectors"), np.linalg.eigh(inputs["a"]), strict=True))
        case "random":
            [count] = work.spec.outputs[0].sized(1)
            found = {"numbers": rng.random(count) if "uniform" in work.spec.name else rng.standard_normal(count)}
        case _:
            found = reference_answers(work)
    return {name: np.asarray(array, np.float32) for name, array in found.items()}


def wrongs(work: Workload, got: Arrays, given: Workload | None = None) -> list[str]:
    """Of an answer to the work, which may have been computed for another one."""
    reference = work.implementation_of_reference()
    errors = reference.output_errors(work.weights, work.inputs, got, reference_answers(work), ROUNDOFF)
    return [error.name for error in errors if not error.right]


@pytest.mark.parametrize("name", [*NAMES, *LARGE])
def test_a_right_answer_in_float32_is_right(name: str) -> None:
    work = work_of(name)
    assert wrongs(work, right_answer(work)) == []


@pytest.mark.parametrize("name", [*(name for name in NAMES if not name.startswith("random")), *LARGE])
def test_the_answer_to_other_inputs_and_one_of_few_bits_are_wrong(name: str) -> None:
    work, other = work_of(name), work_of(name, seed=3)
    assert wrongs(work, right_answer(other))
    few = {key: rounded_to_bfloat16(array) for key, array in right_answer(work).items()}
    assert wrongs(work, few)


@pytest.mark.parametrize("name", NAMES)
def test_answers_of_another_shape_or_not_finite_are_wrong(name: str) -> None:
    work = work_of(name)
    answer = right_answer(work)
    first = next(iter(answer))
    assert wrongs(work, {**answer, first: answer[first][..., :-1]}) == [first]
    spoilt = answer[first].copy()
    spoilt.flat[0] = np.nan
    assert wrongs(work, {**answer, first: spoilt}) == [first]


def test_signs_of_factors_are_free_and_their_order_is_not() -> None:
    qr, svd, eigh = map(work_of, ("qr-m40-n24", "svd-m40-n24", "eigh-n40"))
    signs = np.where(np.arange(24) % 3, 1, -1).astype(np.float32)
    factors = right_answer(qr)
    assert not wrongs(qr, {"q": factors["q"] * signs, "r": factors["r"] * signs[:, None]})
    assert wrongs(qr, {"q": factors["q"] * signs, "r": factors["r"]}) == ["A - Q R"]
    parts = right_answer(svd)
    assert not wrongs(svd, {"u": parts["u"] * signs, "s": parts["s"], "vt": parts["vt"] * signs[:, None]})
    turned = {"u": parts["u"][:, ::-1], "s": parts["s"][::-1], "vt": parts["vt"][::-1]}
    assert wrongs(svd, turned) == ["singular values"]
    pairs = right_answer(eigh)
    assert wrongs(eigh, {"values": pairs["values"][::-1], "vectors": pairs["vectors"][:, ::-1]}) == ["eigenvalues"]


def test_factors_without_their_form_are_wrong() -> None:
    qr, cholesky = work_of("qr-m24-n24"), work_of("cholesky-n40")
    identity = {"q": np.eye(24, dtype=np.float32), "r": qr.inputs["a"]}
    assert wrongs(qr, identity) == ["below the diagonal of R"]
    factor = right_answer(cholesky)["factor"]
    assert wrongs(cholesky, {"factor": -factor}) == ["signs of the diagonal of L"]
    values, vectors = np.linalg.eigh(cholesky.inputs["a"])
    root = vectors * np.sqrt(values) @ vectors.T  # which also gives A
    assert "above the diagonal of L" in wrongs(cholesky, {"factor": root.astype(np.float32)})


@pytest.mark.parametrize("factor", [0.0, 1.01, 1e30])
def test_a_solution_of_another_size_is_wrong(factor: float) -> None:
    work = work_of("solve-n40-r3")
    assert wrongs(work, {"x": np.float32(factor) * right_answer(work)["x"]}) == ["A x - b"]


def transform(signal: Array) -> Array:
    name = f"fft-n{signal.shape[-1]}-b{len(signal)}"
    found = find(name)
    work = Workload(found.spec, found.package, 1, "infer", "fp32", {}, {"signal": signal.astype(np.float32)})
    answer = reference_answers(work)
    return np.asarray(answer["real"] + 1j * answer["imaginary"])


def test_transforms_are_those_of_analytic_pairs() -> None:
    count, places = 128, np.arange(128)
    impulse = transform((places == 3)[None] * 1.0)[0]
    np.testing.assert_allclose(impulse, np.exp(-2j * np.pi * 3 * np.arange(65) / count), atol=1e-12)
    tone = transform(np.cos(2 * np.pi * 5 * places / count)[None])[0]
    np.testing.assert_allclose(np.abs(tone), np.where(np.arange(65) == 5, count / 2, 0), atol=1e-5)
    width = 6.0
    bell = np.exp(-(np.minimum(places, count - places) ** 2) / (2 * width**2))
    expected = width * math.sqrt(2 * np.pi) * np.exp(-2 * (np.pi * np.arange(65) * width / count) ** 2)
    np.testing.assert_allclose(transform(bell[None])[0].real, expected, atol=1e-5)


def test_another_sign_scale_or_order_of_a_transform_is_wrong() -> None:
    work = work_of("fft2-h8-w10-b2")
    answer = right_answer(work)
    assert wrongs(work, {**answer, "imaginary": -answer["imaginary"]})
    assert wrongs(work, {name: array / np.float32(80) for name, array in answer.items()})
    assert wrongs(work, {name: np.roll(array, 1, 1) for name, array in answer.items()})


def test_operations_are_those_of_loops_by_hand() -> None:
    """By leading order: what LAPACK counts too leaves out terms that vanish as matrices grow."""
    m, n, sides = 90, 60, 4
    elimination = sum((n - column - 1) ** 2 for column in range(n)) + sides * sum(2 * row for row in range(n))
    assert counted(f"solve-n{n}-r{sides}") == pytest.approx(2 * elimination, rel=0.06)
    factor = sum((n - column) * (n - column - 1) / 2 for column in range(n))
    assert counted(f"cholesky-n{n}") == pytest.approx(2 * factor, rel=0.06)
    reflections = sum(4 * (m - column) * (n - column) for column in range(n))  # a product and an update, for R
    assert counted(f"qr-m{m}-n{n}") == pytest.approx(2 * reflections, rel=0.06)  # and as many to form Q
    points = 2**10
    butterflies = sum(points // 2 for _ in range(10))  # of 10 operations each, on complex numbers
    assert counted(f"fft-n{points}-b1") == pytest.approx(butterflies * 10 / 2)
    assert counted("spmv-n64-z5") == 2 * 64 * 5
    assert counted("segment-sum-n300-d4-s20") == 300 * 4


def counted(name: str) -> float:
    operation = operation_named(name)
    assert operation is not None
    return operation.operations


def test_what_has_no_lower_bound_of_operations_is_under_no_roof() -> None:
    costs = {}
    for name in ("svd-m40-n24", "eigh-n40", "qr-m40-n24", "fft-n64-b1"):
        found = call_cost(find(name).spec, Work(name, 1))
        assert found is not None
        costs[name] = found.operations
    assert costs["svd-m40-n24"] is None
    assert costs["eigh-n40"] is None
    assert costs["qr-m40-n24"] == counted("qr-m40-n24")
    assert costs["fft-n64-b1"] == 2.5 * 64 * 6


def test_a_sparse_product_is_that_of_the_whole_matrix() -> None:
    work = work_of("spmv-n64-z5")
    operation = operation_named("spmv-n64-z5")
    assert isinstance(operation, SparseProduct)
    columns = operation.columns
    assert (np.diff(columns, axis=1) > 0).all()
    assert (columns.min(), columns.max()) >= (0, 59)
    assert columns.max() < 64
    whole = np.zeros((64, 64))
    whole[np.arange(64)[:, None], columns] = work.weights["values"].reshape(64, 5)
    np.testing.assert_allclose(reference_answers(work)["product"], whole @ work.inputs["x"].astype(float), rtol=1e-12)


def test_sums_by_segment_are_those_of_a_loop() -> None:
    work = work_of("segment-sum-n300-d4-s20")
    sums = np.zeros((20, 4))
    for row, segment in zip(work.inputs["data"], work.inputs["segments"], strict=True):
        sums[segment] += row
    np.testing.assert_allclose(reference_answers(work)["sums"], sums, rtol=1e-12)


def test_every_kind_of_science_is_listed_and_found_by_its_name() -> None:
    listed = [each.operation for each in listed_operations() if "science" in each.lists]
    assert {type(each) for each in listed} == {*LINEAR_ALGEBRA_KINDS, *SCIENCE_KINDS}
    assert all(isinstance(each, Science) and operation_named(each.name) == each for each in listed)
