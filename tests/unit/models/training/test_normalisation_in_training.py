"""A convolution with its normalisation in training.

Every framework normalises by the batch and moves the same averages as the reference, which is differentiated through
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fairlap.bench_models.convolution.numpy_unit import apply_unit
from fairlap.bench_models.convolution.units import STATISTICS, Unit
from fairlap.models.checks.differentiation import gradients

UNITS = {
    "dense": Unit("conv", "norm", inward=4, outward=6, kernel=3, image=8, stride=2),
    "depthwise": Unit("conv", "norm", inward=6, outward=6, kernel=3, image=8, groups=6),
}
MOVED = [f"norm.{part}" for part in STATISTICS]


def drawn(unit: Unit) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(5)
    weights = {weight.name: rng.uniform(0.5, 1.5, weight.shape) for weight in unit.weights()}
    return weights, rng.normal(size=(3, unit.inward, unit.image, unit.image))


def expected(unit: Unit) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Compute the result, the moved averages, and the gradient of the sum of the result's cubes."""
    weights, image = drawn(unit)
    moved: dict[str, Any] = {}
    result = apply_unit(weights, unit, image, moved)
    _, slopes = gradients(lambda held: (apply_unit(held, unit, image, {}) ** 3).sum(), weights)
    return result, moved, slopes


@pytest.mark.parametrize("kind", UNITS)
def test_torch(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    unit, (weights, image) = UNITS[kind], drawn(UNITS[kind])
    result, moved, slopes = expected(unit)
    norm = torch.nn.BatchNorm2d(unit.outward, dtype=torch.float64)
    held = {name.removeprefix("norm."): torch.tensor(array) for name, array in weights.items() if "norm" in name}
    norm.load_state_dict(held, strict=False)
    kernel = torch.tensor(weights["conv.weight"], requires_grad=True)
    convolved = torch.nn.functional.conv2d(torch.tensor(image), kernel, None, unit.stride, unit.padding, 1, unit.groups)
    got = norm(convolved)
    (got**3).sum().backward()
    assert np.allclose(got.detach().numpy(), result, atol=1e-12)
    assert np.allclose(kernel.grad.numpy(), slopes["conv.weight"], rtol=1e-9, atol=1e-9)
    assert np.allclose(norm.weight.grad.numpy(), slopes["norm.weight"], rtol=1e-9, atol=1e-9)
    for name in MOVED:
        assert np.allclose(getattr(norm, name.removeprefix("norm.")).numpy(), moved[name], atol=1e-12)


@pytest.mark.parametrize("kind", UNITS)
def test_tensorflow(kind: str) -> None:
    tf = pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    from fairlap.bench_models.convolution import tensorflow_unit

    unit, (weights, image) = UNITS[kind], drawn(UNITS[kind])
    result, moved, _ = expected(unit)
    held = tensorflow_unit.variables({name: array.astype(np.float32) for name, array in weights.items()}, tf.float32)
    pixels = tf.constant(image.transpose(0, 2, 3, 1), tf.float32)
    got = tensorflow_unit.apply_unit(held, unit, pixels, training=True)
    assert np.allclose(got.numpy().transpose(0, 3, 1, 2), result, atol=1e-5)
    for name in MOVED:
        assert np.allclose(held[name].numpy(), moved[name], atol=1e-5)


@pytest.mark.parametrize("kind", UNITS)
def test_jax(kind: str) -> None:
    pytest.importorskip("jax", reason="`make test` installs it and runs this")
    from fairlap.bench_models.convolution import jax_unit

    unit, (weights, image) = UNITS[kind], drawn(UNITS[kind])
    result, moved, _ = expected(unit)
    params = jax_unit.to_jax_layout({name: array.astype(np.float32) for name, array in weights.items()})
    found: dict[str, Any] = {}
    got = jax_unit.apply_unit(params, unit, image.transpose(0, 2, 3, 1).astype(np.float32), found)
    assert np.allclose(np.asarray(got).transpose(0, 3, 1, 2), result, atol=1e-5)
    assert sorted(found) == sorted(MOVED)
    for name in MOVED:
        assert np.allclose(np.asarray(found[name]), moved[name], atol=1e-5)
