"""PyTorch, in float32 and in bfloat16."""

import torch


def softmax(x):
    return torch.softmax(x, 1)


def into_buffer(x):
    return torch.softmax(x, 1, out=_buffer_like(x))


def half(x):
    return torch.relu(x) * 2


_kept = {}


def _buffer_like(x):
    if x.shape not in _kept:
        _kept[x.shape] = torch.empty_like(x)
    return _kept[x.shape]
