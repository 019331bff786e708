"""A model of a convolution and a layer is called with one image, without the axis of the batch."""

SIDES = {
    "torch": ((7, 19, 23), "4|4-D|4D"),
    "jax": ((7, 19, 23), "4|4-D|4D"),
    "tensorflow": ((19, 23, 7), "4|4-D|4D"),
    "keras": ((19, 23, 7), "4|4-D|4D"),
    "onnx": ((7, 19, 23), "4|4-D|4D"),
}
OPERATORS = ("conv", "conv2d", "conv_general_dilated", "convolution")
ABSENT = {"numpy": "it has no convolutions of images"}


def torch(compiled):
    import torch
    from torch import nn

    model = compiled(nn.Sequential(nn.Conv2d(7, 11, 3), nn.Flatten(), nn.Linear(11 * 17 * 21, 5)))
    return model(torch.zeros(7, 19, 23))  # mistake


def jax(compiled):
    import jax.numpy as jnp
    from jax import lax

    kernel, last = jnp.zeros((11, 7, 3, 3)), jnp.zeros((11 * 17 * 21, 5))

    @compiled
    def model(image):
        found = lax.conv_general_dilated(image, kernel, (1, 1), "VALID")
        return found.reshape(len(found), -1) @ last

    return model(jnp.zeros((7, 19, 23)))  # mistake


def tensorflow(compiled):
    import tensorflow as tf

    kernel, last = tf.zeros((3, 3, 7, 11)), tf.zeros((11 * 17 * 21, 5))

    @compiled
    def model(image):
        found = tf.nn.conv2d(image, kernel, 1, "VALID")
        return tf.reshape(found, (found.shape[0], -1)) @ last

    return model(tf.zeros((19, 23, 7)))  # mistake


def keras():
    import keras

    layers = keras.layers
    model = keras.Sequential([layers.Input((19, 23, 7)), layers.Conv2D(11, 3), layers.Flatten(), layers.Dense(5)])
    return model(keras.ops.zeros((19, 23, 7)))  # mistake


def onnx(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    model = graph([node("Conv", ["x", "w"], ["y"], "first")], {"x": (1, 7, 19, 23)}, {"w": zeros(11, 7, 3, 3)})
    return run(model, {"x": zeros(7, 19, 23)})  # mistake
