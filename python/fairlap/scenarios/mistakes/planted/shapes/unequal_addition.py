"""A matrix and a row are added that do not broadcast."""

SIDES = ((17, 13), (19,))
CLASH = (13, 19)
OPERATORS = ("add", "addition", "AddV2", "broadcast", "broadcasting", "broadcastable", "elementwise")


def numpy():
    import numpy as np

    x, bias = np.zeros((17, 13)), np.zeros(19)
    return x + bias  # mistake


def torch(compiled):
    import torch

    @compiled
    def shifted(x, bias):
        return x + bias  # mistake

    return shifted(torch.zeros(17, 13), torch.zeros(19))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def shifted(x, bias):
        return x + bias  # mistake

    return shifted(jnp.zeros((17, 13)), jnp.zeros(19))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def shifted(x, bias):
        return x + bias  # mistake

    return shifted(tf.zeros((17, 13)), tf.zeros(19))


def keras():
    from keras import ops

    x, bias = ops.zeros((17, 13)), ops.zeros(19)
    return ops.add(x, bias)  # mistake


def onnx(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    shifted = node("Add", ["x", "bias"], ["y"], "shifted")  # mistake
    return run(graph([shifted], {"x": (17, 13)}, {"bias": zeros(19)}), {"x": zeros(17, 13)})
