"""A convolution gets an image with another number of channels than its kernel has."""

SIDES = {
    "torch": ((2, 7, 19, 23), (11, 5, 3, 3)),
    "jax": ((2, 7, 19, 23), (11, 5, 3, 3)),
    "tensorflow": ((2, 19, 23, 7), (3, 3, 5, 11)),
    "keras": ((2, 19, 23, 7), (3, 3, 5, 11)),
    "onnx": ((2, 7, 19, 23), (11, 5, 3, 3)),
}
CLASH = (7, 5)
OPERATORS = ("conv", "conv2d", "conv_general_dilated", "convolution")
PART = {"keras": "first", "onnx": "first"}
ABSENT = {"numpy": "it has no convolutions of images"}


def torch(compiled):
    import torch
    import torch.nn.functional as F

    @compiled
    def filtered(image, kernel):
        return F.conv2d(image, kernel)  # mistake

    return filtered(torch.zeros(2, 7, 19, 23), torch.zeros(11, 5, 3, 3))


def jax(compiled):
    import jax.numpy as jnp
    from jax import lax

    @compiled
    def filtered(image, kernel):
        return lax.conv_general_dilated(image, kernel, (1, 1), "VALID")  # mistake

    return filtered(jnp.zeros((2, 7, 19, 23)), jnp.zeros((11, 5, 3, 3)))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def filtered(image, kernel):
        return tf.nn.conv2d(image, kernel, 1, "VALID")  # mistake

    return filtered(tf.zeros((2, 19, 23, 7)), tf.zeros((3, 3, 5, 11)))


def keras():
    import keras

    layer = keras.layers.Conv2D(11, 3, name="first")
    layer.build((None, 19, 23, 5))
    return layer(keras.ops.zeros((2, 19, 23, 7)))  # mistake


def onnx(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    filtered = node("Conv", ["x", "w"], ["y"], "first")  # mistake
    return run(graph([filtered], {"x": ("n", 7, 19, 23)}, {"w": zeros(11, 5, 3, 3)}), {"x": zeros(2, 7, 19, 23)})
