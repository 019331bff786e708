"""Elements are selected by their values within what is compiled, so that the size of the result depends on them."""

SIDES = ("bool|boolean|NonConcreteBooleanIndex|nonzero|concrete|dynamic|static",)
OPERATORS = ("nonzero", "boolean_mask", "Where", "indexing", "index", "indices")
MEANT = [1.0, 3.0]
_NOT_TRACED = "nothing is traced"
ABSENT = {
    "numpy": _NOT_TRACED,
    "torch": _NOT_TRACED,
    "jax:jit=off": _NOT_TRACED,
    "tensorflow": _NOT_TRACED,
    "keras": "keras.ops cannot select by values",
    "onnx": "a file is a graph, and holds no Python",
}


def torch(compiled):
    import torch

    @compiled
    def positive(x):
        return x[x > 0]  # mistake

    return positive(torch.tensor([1.0, -2.0, 3.0]))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def positive(x):
        return x[x > 0]  # mistake

    return positive(jnp.array([1.0, -2.0, 3.0]))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def positive(x):
        return x[x > 0]  # mistake

    return positive(tf.constant([1.0, -2.0, 3.0]))
