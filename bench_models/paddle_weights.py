"""Load weights into a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays

_NAMES = {"_mean": "running_mean", "_variance": "running_var"}  # Paddle's, and the spec's


def with_weights(layer: Any, weights: Arrays) -> Any:
    """Load the weights, which must be exactly the parameters of the layer, and return it in inference mode."""
    held = {_spec_name(name): tensor for name, tensor in layer.state_dict().items()}
    if held.keys() != weights.keys():
        raise ValueError(f"the layer and its weights differ in {sorted(held.keys() ^ weights.keys())}")
    for name, tensor in held.items():
        tensor.set_value(weights[name])
    layer.parameters_by_name = held
    layer.eval()
    return layer


def turned(array: Any) -> Any:
    """To Paddle's layout and back: its matrices of linear layers, the only ones with two axes, are (in, out)."""
    return array.T if array.ndim == 2 else array


def _spec_name(name: str) -> str:
    place, _, last = name.rpartition(".")
    return f"{place}.{_NAMES[last]}" if last in _NAMES else name
