"""Gradients of two files are the same by the values of the weights, whatever exporters call and turn."""

from __future__ import annotations

import numpy as np
from fairlap.models.sources.exports.learning import Pair, _pairs, why_other_gradients

SHAPE = (3, 4, 5)


def pairs(seed: int = 0, **changes: np.ndarray) -> dict[str, Pair]:
    """Of a kernel, and of two biases that begin as zeros."""
    rng = np.random.default_rng(seed)
    weights = {"kernel": rng.normal(size=SHAPE).astype(np.float32), "b1": np.zeros(4, np.float32)}
    weights["b2"] = np.zeros(4, np.float32)
    gradients = {name: rng.normal(size=array.shape) for name, array in weights.items()}
    return _pairs({**weights, **changes}, gradients)


def turned() -> dict[str, Pair]:
    """Return the same in another layout, under other names and in another order."""
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=SHAPE).astype(np.float32)
    of_kernel, of_first, of_second = rng.normal(size=SHAPE), rng.normal(size=4), rng.normal(size=4)
    zeros = np.zeros(4, np.float32)
    weights = {"y": zeros, "x": zeros, "w": kernel.transpose(2, 0, 1).reshape(15, 4)}
    gradients = {"y": of_second, "x": of_first, "w": of_kernel.transpose(2, 0, 1).reshape(15, 4)}
    return _pairs(weights, gradients)


def test_names_layouts_and_orders_do_not_matter() -> None:
    assert why_other_gradients(pairs(), turned()) == ""
    assert why_other_gradients(turned(), pairs()) == ""


def test_one_value_that_an_exporter_changed_is_another_weight() -> None:
    rng = np.random.default_rng(0)
    changed = rng.normal(size=SHAPE).astype(np.float32)
    changed[1, 2, 3] = np.nextafter(changed[1, 2, 3], np.float32(9))
    assert "kernel" in why_other_gradients(pairs(), pairs(kernel=changed))


def test_the_same_weights_in_other_places_have_other_gradients() -> None:
    found = turned()
    found["w"] = np.stack((found["w"][0], np.random.default_rng(1).permutation(found["w"][1])))
    assert "w" in why_other_gradients(pairs(), found)


def test_a_bias_that_one_file_froze_is_named() -> None:
    whole, frozen = pairs(), pairs()
    del frozen["b2"]
    assert why_other_gradients(whole, frozen)
    assert "b2" in why_other_gradients(frozen, whole) or "b1" in why_other_gradients(frozen, whole)


def test_a_weight_that_no_gradient_reaches_is_not_compared() -> None:
    weights = {"kernel": np.ones(3, np.float32), "unused": np.ones(2, np.float32)}
    found = _pairs(weights, {"kernel": np.ones(3), "unused": np.zeros(2)})
    assert set(found) == {"kernel"}
