"""An intermediate value is kept within what is compiled and used outside."""

SIDES = ("leaked|leak|escaped|tracer|out of scope|symbolic|scope",)
OPERATORS = ()
MEANT = [3.0, 3.0, 3.0]
_NOT_TRACED = "nothing is traced"
ABSENT = {
    "numpy": _NOT_TRACED,
    "torch": _NOT_TRACED,
    "jax:jit=off": _NOT_TRACED,
    "tensorflow": _NOT_TRACED,
    "keras": "models return what they compute, and their layers are built with values of another kind",
    "onnx": "a file is a graph, and holds no Python",
}


def torch(compiled):
    import torch

    kept = []

    @compiled
    def step(x):
        kept.append(x + 1)  # mistake
        return x * 2

    step(torch.ones(3))
    return kept[0] + 1


def jax(compiled):
    import jax.numpy as jnp

    kept = []

    @compiled
    def step(x):
        kept.append(x + 1)  # mistake
        return x * 2

    step(jnp.ones(3))
    return kept[0] + 1


def tensorflow(compiled):
    import tensorflow as tf

    kept = []

    @compiled
    def step(x):
        kept.append(x + 1)  # mistake
        return x * 2

    step(tf.ones(3))
    return kept[0] + 1
