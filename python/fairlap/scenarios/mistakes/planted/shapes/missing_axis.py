"""A matrix is summed along an axis that it does not have."""

SIDES = ("3", "2")
OPERATORS = ("sum", "reduce_sum", "ReduceSum", "reduction")


def numpy():
    import numpy as np

    x = np.zeros((17, 13))
    return np.sum(x, axis=3)  # mistake


def torch(compiled):
    import torch

    @compiled
    def total(x):
        return x.sum(dim=3)  # mistake

    return total(torch.zeros(17, 13))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def total(x):
        return jnp.sum(x, axis=3)  # mistake

    return total(jnp.zeros((17, 13)))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def total(x):
        return tf.reduce_sum(x, axis=3)  # mistake

    return total(tf.zeros((17, 13)))


def keras():
    from keras import ops

    x = ops.zeros((17, 13))
    return ops.sum(x, axis=3)  # mistake


def onnx(run):
    import numpy as np

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    total = node("ReduceSum", ["x", "axes"], ["y"], "total")  # mistake
    return run(graph([total], {"x": (17, 13)}, {"axes": np.array([3])}), {"x": zeros(17, 13)})
