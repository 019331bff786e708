"""An element of the weights is set in place, where a gradient of them is wanted or arrays cannot be changed."""

SIDES = ("in-place|inplace|in place|assignment|immutable",)
OPERATORS = ()
ABSENT = {
    "numpy": "its arrays may be changed, and it has no gradients",
    "onnx": "a file is a graph, which changes nothing in place",
}


def torch(compiled):
    import torch

    @compiled
    def clipped(w):
        w[0] = 0.0  # mistake
        return w * 2

    return clipped(torch.ones(3, requires_grad=True))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def clipped(w):
        w[0] = 0.0  # mistake
        return w * 2

    return clipped(jnp.ones(3))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def clipped(w):
        w[0] = 0.0  # mistake
        return w * 2

    return clipped(tf.ones(3))


def keras():
    import keras

    w = keras.Variable(keras.ops.ones(3))
    w[0] = 0.0  # mistake
    return w * 2
