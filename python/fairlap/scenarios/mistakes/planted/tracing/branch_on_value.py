"""A Python branch asks for the value of an array within what is compiled."""

SIDES = ("bool|boolean|truth|branch|control flow",)
OPERATORS = ()
MEANT = [2.0, 2.0, 2.0]
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

    @compiled
    def step(x):
        if x.sum() > 0:  # mistake
            return x + 1
        return x - 1

    return step(torch.ones(3))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def step(x):
        if x.sum() > 0:  # mistake
            return x + 1
        return x - 1

    return step(jnp.ones(3))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def step(x):
        if tf.reduce_sum(x) > 0:  # mistake
            return x + 1
        return x - 1

    return step(tf.ones(3))


def keras():
    import keras
    import numpy as np

    class Step(keras.layers.Layer):
        def call(self, x):
            if keras.ops.sum(x) > 0:  # mistake
                return x + 1
            return x - 1

    model = keras.Sequential([keras.Input((3,)), Step()])
    return model.predict(np.ones((1, 3)), verbose=0)[0]
