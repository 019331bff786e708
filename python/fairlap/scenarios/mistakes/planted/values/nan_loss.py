"""The logarithm of a probability of 0, times 0, makes a loss not-a-number."""

SIDES = ("nan|zero|invalid|infinite|inf",)
OPERATORS = ("log",)
MEANT = 0.0


def numpy():
    import numpy as np

    p, y = np.array([1.0, 0.0]), np.array([1.0, 0.0])
    return -np.mean(y * np.log(p))  # mistake


def torch(compiled):
    import torch

    @compiled
    def loss(p, y):
        return -(y * torch.log(p)).mean()  # mistake

    return loss(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0]))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def loss(p, y):
        return -(y * jnp.log(p)).mean()  # mistake

    return loss(jnp.array([1.0, 0.0]), jnp.array([1.0, 0.0]))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def loss(p, y):
        return -tf.reduce_mean(y * tf.math.log(p))  # mistake

    return loss(tf.constant([1.0, 0.0]), tf.constant([1.0, 0.0]))


def keras():
    from keras import ops

    p = y = ops.convert_to_tensor([1.0, 0.0])
    return -ops.mean(y * ops.log(p))  # mistake


def onnx(run):
    import numpy as np

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node

    nodes = [
        node("Log", ["x"], ["l"], "logarithm"),  # mistake
        node("Mul", ["x", "l"], ["p"], "products"),
        node("ReduceMean", ["p"], ["y"], "mean", keepdims=0),
    ]
    return run(graph(nodes, {"x": (2,)}, {}), {"x": np.array([1, 0], np.float32)})
