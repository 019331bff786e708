"""A matrix is reshaped into one with another number of elements."""

SIDES = ([(17, 13), "221"], [(19, 11), "209"])
OPERATORS = ("reshape", "view")


def numpy():
    import numpy as np

    x = np.zeros((17, 13))
    return x.reshape(19, 11)  # mistake


def torch(compiled):
    import torch

    @compiled
    def reshaped(x):
        return x.reshape(19, 11)  # mistake

    return reshaped(torch.zeros(17, 13))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def reshaped(x):
        return x.reshape(19, 11)  # mistake

    return reshaped(jnp.zeros((17, 13)))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def reshaped(x):
        return tf.reshape(x, (19, 11))  # mistake

    return reshaped(tf.zeros((17, 13)))


def keras():
    from keras import ops

    x = ops.zeros((17, 13))
    return ops.reshape(x, (19, 11))  # mistake


def onnx(run):
    import numpy as np

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    reshaped = node("Reshape", ["x", "shape"], ["y"], "reshaped")  # mistake
    return run(graph([reshaped], {"x": (17, 13)}, {"shape": np.array([19, 11])}), {"x": zeros(17, 13)})
