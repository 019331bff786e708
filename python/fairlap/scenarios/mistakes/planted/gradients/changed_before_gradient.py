"""An array that the gradient needs is changed in place before the gradient is taken."""

SIDES = ("in-place|inplace|in place",)
OPERATORS = ("exp", "ExpBackward0")
MEANT = [2.0, 2.0, 2.0]
_SAFE = "its arrays cannot be changed in place"
ABSENT = {
    "numpy": "it has no gradients",
    "jax": _SAFE,
    "tensorflow": _SAFE,
    "keras": "it takes gradients by its backend",
    "onnx": "a session has no gradients",
}


def torch(compiled):
    import torch

    @compiled
    def loss(w):
        y = w.exp()
        z = y * 2
        y += 1  # mistake
        return (z + y * 0).sum()

    w = torch.zeros(3, requires_grad=True)
    loss(w).backward()
    return w.grad
