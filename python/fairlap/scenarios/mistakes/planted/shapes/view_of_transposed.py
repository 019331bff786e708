"""A transposed matrix is flattened without a copy."""

SIDES = ("stride|strides|contiguous|in-place",)
OPERATORS = ("view", "reshape", "shape")
MEANT = list(range(6))
_COPIED = "its arrays have no views that a change of shape could break"
ABSENT = {"jax": _COPIED, "tensorflow": _COPIED, "keras": _COPIED, "onnx": _COPIED}


def numpy():
    import numpy as np

    x = np.ascontiguousarray(np.arange(6.0).reshape(3, 2).T).T
    x.shape = (6,)  # mistake
    return x


def torch(compiled):
    import torch

    @compiled
    def flat(x):
        return x.t().view(-1)  # mistake

    return flat(torch.arange(6.0).reshape(3, 2).t().contiguous())
