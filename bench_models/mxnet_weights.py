"""Load weights into a Gluon block, whose layout is that of the spec."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays
from mxnet import nd

_NAMES = {"gamma": "weight", "beta": "bias"}  # of a normalisation: Gluon's, and the spec's


def with_weights(block: Any, weights: Arrays) -> Any:
    """Load the weights, which must be exactly the parameters of the block, and return it."""
    # Only this private method names parameters by their place in the block; the public one numbers them by class.
    held = {_spec_name(name): parameter for name, parameter in block._collect_params_with_prefix().items()}
    if held.keys() != weights.keys():
        raise ValueError(f"the block and its weights differ in {sorted(held.keys() ^ weights.keys())}")
    block.initialize()
    for name, parameter in held.items():
        parameter.set_data(nd.array(weights[name]))
    block.parameters_by_name = held
    return block


def _spec_name(name: str) -> str:
    place, _, last = name.rpartition(".")
    return f"{place}.{_NAMES[last]}" if last in _NAMES else name
