"""Giving a Gluon block its weights. They have the spec's layout already."""

from __future__ import annotations

from typing import Any

from fairlap.models.workload import Arrays
from mxnet import nd

_NAMES = {"gamma": "weight", "beta": "bias"}  # of a normalisation: Gluon's, and the spec's


def with_weights(block: Any, weights: Arrays) -> Any:
    """The block, whose parameters must be the weights, no more and no fewer."""
    # Only this finds parameters by their place in the block; the public way names them after classes, counted.
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
