"""Giving a Paddle layer its weights."""

from __future__ import annotations

from typing import Any

from fairlap.models.workload import Arrays

_NAMES = {"_mean": "running_mean", "_variance": "running_var"}  # Paddle's, and the spec's


def with_weights(layer: Any, weights: Arrays) -> Any:
    """The layer in inference form. Its parameters must be the weights, no more and no fewer."""
    held = {_spec_name(name): tensor for name, tensor in layer.state_dict().items()}
    if held.keys() != weights.keys():
        raise ValueError(f"the layer and its weights differ in {sorted(held.keys() ^ weights.keys())}")
    for name, tensor in held.items():
        tensor.set_value(weights[name])
    layer.parameters_by_name = held
    layer.eval()
    return layer


def turned(array: Any) -> Any:
    """There and back: a linear layer's matrix, the only one with two axes, lies (in, out) in Paddle."""
    return array.T if array.ndim == 2 else array


def _spec_name(name: str) -> str:
    place, _, last = name.rpartition(".")
    return f"{place}.{_NAMES[last]}" if last in _NAMES else name
