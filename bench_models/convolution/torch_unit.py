"""Load weights into an image network in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.models.arrays import Arrays
from torch import nn


def with_weights(model: nn.Module, weights: Arrays) -> Any:
    """Put the model into inference form; its parameters and buffers must be the weights, no more and no fewer."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.num_batches_tracked = None  # counts training steps; it is no weight of the model
    state = model.state_dict()
    if state.keys() != weights.keys():
        raise ValueError(f"the model and its weights differ in {sorted(state.keys() ^ weights.keys())}")
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(torch.tensor(weights[name]))
    return model.eval()
