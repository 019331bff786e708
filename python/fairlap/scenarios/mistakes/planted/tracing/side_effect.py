"""A counter of calls is raised within what is compiled, which is called twice."""

SIDES = ("side effect|side effects|mutated|mutation|global",)
OPERATORS = ()
MEANT = 2.0
_NOT_TRACED = "nothing is traced"
ABSENT = {
    "numpy": _NOT_TRACED,
    "torch": _NOT_TRACED,
    "jax:jit=off": _NOT_TRACED,
    "tensorflow": _NOT_TRACED,
    "onnx": "a file is a graph, and holds no Python",
}


def torch(compiled):
    import torch

    calls = []

    @compiled
    def step(x):
        calls.append(1)  # mistake
        return x + 1

    step(step(torch.ones(3)))
    return len(calls)


def jax(compiled):
    import jax.numpy as jnp

    calls = []

    @compiled
    def step(x):
        calls.append(1)  # mistake
        return x + 1

    step(step(jnp.ones(3)))
    return len(calls)


def tensorflow(compiled):
    import tensorflow as tf

    calls = []

    @compiled
    def step(x):
        calls.append(1)  # mistake
        return x + 1

    step(step(tf.ones(3)))
    return len(calls)


def keras():
    import keras
    import numpy as np

    calls = []

    class Step(keras.layers.Layer):
        def call(self, x):
            calls.append(1)  # mistake
            return x + 1

    model = keras.Sequential([Step()])
    model.build((None, 3))
    calls.clear()
    model.predict(np.ones((2, 3)), batch_size=1, verbose=0)
    return len(calls)
