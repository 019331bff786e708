"""References of derivatives are what closed forms and mpmath say, and libraries have the same derivatives."""

from __future__ import annotations

import itertools
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.differentiated_functions.function import (
    ALONG,
    POINT,
    SAMPLE_GRADIENT,
    TARGET,
    VALUE,
    Function,
)
from fairlap.bench_models.differentiated_functions.reference import Implementation as Reference
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.names import workload_names
from fairlap.models.registry import find
from fairlap.models.spec import Spec
from fairlap.request.work import Mode

Array = npt.NDArray[np.float64]

SCALAR = ("log_sum_exp", "mlp_loss", "rosenbrock")
MAPS = ("map_256_to_4", "map_64_to_16", "map_32_to_32", "map_16_to_64", "map_4_to_256")


def spec_module(name: str) -> Any:
    return import_module(f"fairlap.bench_models.{name}.spec")


def drawn(spec: Spec, mode: Mode, batch: int = 1) -> tuple[dict[str, Array], dict[str, Array]]:
    weights = draw_weights(spec, 1)
    inputs = draw_inputs(spec.in_mode(mode), batch, 1)
    return {name: each.astype(np.float64) for name, each in weights.items()}, {
        name: each.astype(np.float64) for name, each in inputs.items()
    }


def reference_of(name: str, mode: Mode, inputs: dict[str, Array], weights: dict[str, Array]) -> dict[str, Array]:
    found = Reference(spec_module(name))
    found.differentiate(mode)
    return found.forward(weights, inputs)


def test_these_are_the_functions_and_only_those_with_one_output_have_second_derivatives() -> None:
    second = {name for name in workload_names() if "hessian" in find(name).spec.modes}
    first = {name for name in workload_names() if "jacobian" in find(name).spec.modes}
    assert second == set(SCALAR)
    assert first == {*SCALAR, *MAPS, "fixed_point", "fixed_point_unrolled"}
    assert {name for name in workload_names() if "per-sample" in find(name).spec.modes} == {*MAPS}


def test_the_derivatives_of_a_softmax_are_the_closed_ones() -> None:
    weights, inputs = drawn(find("log_sum_exp").spec, "hvp", 2)
    share = np.exp(inputs[POINT]) / np.exp(inputs[POINT]).sum(axis=1, keepdims=True)
    found = reference_of("log_sum_exp", "jacobian", inputs, weights)["jacobian"]
    np.testing.assert_allclose(found, share, rtol=1e-13)
    exact = np.array([np.diag(row) - np.outer(row, row) for row in share])
    found = reference_of("log_sum_exp", "hessian", inputs, weights)["hessian"]
    np.testing.assert_allclose(found, exact, atol=1e-10 * exact.max())
    found = reference_of("log_sum_exp", "hvp", inputs, weights)["hvp"]
    np.testing.assert_allclose(found, np.einsum("bij,bj->bi", exact, inputs[ALONG]), atol=1e-10)


def test_the_third_derivatives_of_a_softmax_are_the_closed_ones() -> None:
    """The gradient of the variance of the vector under the softmax, which is the curvature along it."""
    weights, inputs = drawn(find("log_sum_exp").spec, "third", 2)
    share = np.exp(inputs[POINT]) / np.exp(inputs[POINT]).sum(axis=1, keepdims=True)
    off = inputs[ALONG] - (share * inputs[ALONG]).sum(axis=1, keepdims=True)
    exact = share * (off**2 - (share * off**2).sum(axis=1, keepdims=True))
    found = reference_of("log_sum_exp", "third", inputs, weights)["third"]
    np.testing.assert_allclose(found, exact, atol=1e-9 * np.abs(exact).max())


def test_the_third_derivatives_of_rosenbrocks_function_are_the_closed_ones() -> None:
    weights, inputs = drawn(find("rosenbrock").spec, "third")
    [point], [along] = inputs[POINT], inputs[ALONG]
    exact = np.zeros(len(point))
    exact[:-1] = 2400 * point[:-1] * along[:-1] ** 2 - 800 * along[:-1] * along[1:]
    exact[1:] -= 400 * along[:-1] ** 2
    [found] = reference_of("rosenbrock", "third", inputs, weights)["third"]
    np.testing.assert_allclose(found, exact, atol=1e-9 * np.abs(exact).max())


def test_third_derivatives_are_what_mpmath_differentiates() -> None:
    def value(point: Any, arrays: Any, _weights: Any) -> Any:
        return arrays.tanh(point[..., 0] * point[..., 1]) + arrays.exp(point[..., 0]) * arrays.log(point[..., 2])

    spec: Any = SimpleNamespace(FUNCTION=Function("own", "", "", value, 3))
    reference = Reference(spec)
    reference.differentiate("third")
    point, along = (0.3, -0.7, 1.9), (0.5, 1.25, -0.75)
    [found] = reference.forward({}, {POINT: np.array([point]), ALONG: np.array([along])})["third"]

    def exact(number: int) -> Any:
        """Sum over the two numbers along which it is differentiated besides this one."""
        total = mpmath.mpf(0)
        for one, other in itertools.product(range(3), repeat=2):
            orders = tuple((one, other, number).count(place) for place in range(3))
            slope = mpmath.diff(
                lambda *own: mpmath.tanh(own[0] * own[1]) + mpmath.exp(own[0]) * mpmath.log(own[2]), point, orders
            )
            total += along[one] * along[other] * slope
        return total

    with mpmath.workdps(40):
        for number in range(3):
            assert found[number] == pytest.approx(float(exact(number)), rel=1e-9)


def test_the_hessian_of_rosenbrocks_function_is_the_closed_one() -> None:
    weights, inputs = drawn(find("rosenbrock").spec, "hessian")
    [point] = inputs[POINT]
    middle = 2 + np.r_[1200 * point[:-1] ** 2 - 400 * point[1:], 0.0]
    middle[1:] += 200
    middle[-1] -= 2
    beside = np.diag(-400 * point[:-1], 1)
    [found] = reference_of("rosenbrock", "hessian", inputs, weights)["hessian"]
    np.testing.assert_allclose(found, np.diag(middle) + beside + beside.T, atol=1e-6)


def network_by_mpmath(weights: dict[str, Array], point: Any, output: int) -> Any:
    hidden = [
        mpmath.tanh(sum(mpmath.mpf(each) * x for each, x in zip(column, point, strict=True)) + mpmath.mpf(bias))
        for column, bias in zip(weights["first"].T, weights["first_bias"], strict=True)
    ]
    return sum(mpmath.mpf(each) * x for each, x in zip(weights["second"][:, output], hidden, strict=True))


def test_the_jacobian_of_a_network_is_what_mpmath_differentiates() -> None:
    weights, inputs = drawn(find("map_4_to_256").spec, "jacobian")
    [found] = reference_of("map_4_to_256", "jacobian", inputs, weights)["jacobian"]
    assert found.shape == (256, 4)
    [point] = inputs[POINT]
    with mpmath.workdps(30):
        for output, number in ((0, 1), (200, 3)):
            orders = tuple(int(place == number) for place in range(4))
            exact = mpmath.diff(lambda *own: network_by_mpmath(weights, own, output), tuple(point), orders)  # noqa: B023
            assert found[output, number] == pytest.approx(float(exact), rel=1e-12)


def test_the_jacobian_of_a_fixed_point_is_that_of_the_implicit_function_theorem() -> None:
    """Complex steps pass through all steps of the iteration; the theorem needs its end alone."""
    weights, inputs = drawn(find("fixed_point").spec, "jacobian", 2)
    assert np.linalg.norm(weights["again"], 2) < 0.6
    found = reference_of("fixed_point", "jacobian", inputs, weights)["jacobian"]
    ends = reference_of("fixed_point", "infer", inputs, weights)[VALUE]
    for point, end, jacobian in zip(inputs[POINT], ends, found, strict=True):
        flat = 1 - end**2
        np.testing.assert_allclose(np.tanh(end @ weights["again"] + point @ weights["once"]), end, atol=1e-13)
        exact = np.linalg.solve(np.eye(64) - flat[:, None] * weights["again"].T, flat[:, None] * weights["once"].T)
        np.testing.assert_allclose(jacobian, exact, atol=1e-10)


def test_gradients_of_samples_are_complex_steps_and_add_up_to_that_of_the_mean_loss() -> None:
    weights, inputs = drawn(find("map_4_to_256").spec, "per-sample", 3)
    found = reference_of("map_4_to_256", "per-sample", inputs, weights)
    value = spec_module("map_4_to_256").FUNCTION.value

    def loss(held: dict[str, Array], one: Any) -> Any:
        return ((value(inputs[POINT][one], np, held) - inputs[TARGET][one]) ** 2).mean()

    for name, place in (("first", (2, 5)), ("first_bias", (7,)), ("second", (63, 200))):
        stepped: dict[str, Any] = {key: each.astype(np.complex128) for key, each in weights.items()}
        stepped[name][place] += 1e-100j
        slopes = found[f"{SAMPLE_GRADIENT}{name}"][(slice(None), *place)]
        assert slopes == pytest.approx([loss(stepped, one).imag / 1e-100 for one in range(3)], rel=1e-12)
        assert slopes.mean() == pytest.approx(loss(stepped, slice(None)).imag / 1e-100, rel=1e-12)


@pytest.mark.parametrize("name", [*SCALAR, *MAPS])
def test_products_are_those_of_the_whole_matrices(name: str) -> None:
    function: Function = spec_module(name).FUNCTION
    for mode in ("jvp", "vjp"):
        weights, inputs = drawn(find(name).spec, mode, 2)
        whole = reference_of(name, "jacobian", inputs, weights)["jacobian"].reshape(2, -1, function.numbers)
        found = reference_of(name, mode, inputs, weights)
        np.testing.assert_allclose(found[VALUE], reference_of(name, "infer", inputs, weights)[VALUE], rtol=1e-14)
        along = inputs[ALONG].reshape(2, -1)
        exact = np.einsum("bmn,bn->bm" if mode == "jvp" else "bmn,bm->bn", whole, along)
        np.testing.assert_allclose(found[mode].reshape(2, -1), exact, rtol=1e-11, atol=1e-11 * np.abs(exact).max())


@pytest.mark.parametrize("name", ["log_sum_exp", "rosenbrock", pytest.param("mlp_loss", marks=pytest.mark.slow)])
def test_a_hessian_is_symmetric_and_its_products_are_those_by_a_vector(name: str) -> None:
    weights, inputs = drawn(find(name).spec, "hvp")
    [whole] = reference_of(name, "hessian", inputs, weights)["hessian"]
    size = np.abs(whole).max()
    np.testing.assert_allclose(whole, whole.T, atol=1e-8 * size)
    [found] = reference_of(name, "hvp", inputs, weights)["hvp"]
    np.testing.assert_allclose(found, whole @ inputs[ALONG][0], atol=1e-7 * size)


def library_answers(library: str, name: str, mode: Mode, direction: str, batch: int) -> tuple[list[Array], list[Array]]:
    """Of the library, and of the reference."""
    spec = find(name).spec
    weights, inputs = drawn(spec, mode, batch)
    exact = list(reference_of(name, mode, inputs, weights).values())
    module = import_module(f"fairlap.bench_models.differentiated_functions.{library}_model")
    model = module.Implementation(spec_module(name))
    model.differentiate(mode, direction)
    narrow = {key: each.astype(np.float32) for key, each in inputs.items()}
    small = {key: each.astype(np.float32) for key, each in weights.items()}
    if library == "torch":
        import torch

        held = model.build(small)
        got = held(**{key: torch.from_numpy(each) for key, each in narrow.items()})
    else:
        got = model.forward(small, narrow)
    return [np.asarray(each) for each in got], exact


CASES: list[tuple[str, Mode, str]] = [
    ("mlp_loss", "hessian", ""),
    ("mlp_loss", "hessian", "reverse"),
    ("mlp_loss", "hvp", ""),
    ("mlp_loss", "hvp", "reverse"),
    ("mlp_loss", "vjp", ""),
    ("mlp_loss", "third", ""),
    ("mlp_loss", "third", "reverse"),
    ("rosenbrock", "third", ""),
    ("log_sum_exp", "jacobian", ""),
    ("rosenbrock", "jvp", ""),
    ("map_32_to_32", "jacobian", ""),
    ("map_32_to_32", "jacobian", "forward"),
    ("map_32_to_32", "vjp", ""),
    ("map_4_to_256", "jvp", ""),
    ("map_4_to_256", "per-sample", ""),
    ("fixed_point", "infer", ""),
    ("fixed_point", "jvp", ""),
    ("fixed_point", "vjp", ""),
    ("fixed_point", "jacobian", ""),
    ("fixed_point_unrolled", "vjp", ""),
]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["jax", "torch"])
def test_a_library_has_the_derivatives_of_the_reference(library: str) -> None:
    """Of one point, and of two together. TensorFlow's are raced in ``test_derivatives_in_frameworks``."""
    pytest.importorskip(library, reason="`make test` installs it and runs this")
    module = import_module(f"fairlap.bench_models.differentiated_functions.{library}_model")
    for name, mode, direction in CASES:
        if direction and direction not in module.Implementation.directions[mode]:
            continue
        for batch in (1, 2):
            got, exact = library_answers(library, name, mode, direction, batch)
            assert len(got) == len(exact)
            for one, other in zip(got, exact, strict=True):
                assert one.shape == other.shape, (name, mode, direction, batch)
                apart = np.linalg.norm(one - other) / np.linalg.norm(other)
                assert apart < 1e-5, (name, mode, direction, batch)
