"""A column of predictions minus a row of the same labels: the difference is a matrix, and the loss is not 0."""

SIDES = ((17, 1), (17,))
OPERATORS = ("subtract", "sub", "mse_loss", "broadcast", "broadcasting")
MEANT = 0.0


def numpy():
    import numpy as np

    predicted, labels = np.arange(17.0)[:, None], np.arange(17.0)
    return np.mean((predicted - labels) ** 2)  # mistake


def torch(compiled):
    import torch
    import torch.nn.functional as F

    @compiled
    def loss(predicted, labels):
        return F.mse_loss(predicted, labels)  # mistake

    return loss(torch.arange(17.0)[:, None], torch.arange(17.0))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def loss(predicted, labels):
        return jnp.mean((predicted - labels) ** 2)  # mistake

    return loss(jnp.arange(17.0)[:, None], jnp.arange(17.0))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def loss(predicted, labels):
        return tf.reduce_mean((predicted - labels) ** 2)  # mistake

    return loss(tf.range(17.0)[:, None], tf.range(17.0))


def keras():
    import keras

    predicted, labels = keras.ops.arange(17.0)[:, None], keras.ops.arange(17.0)
    return keras.losses.MeanSquaredError()(labels, predicted)  # mistake


def onnx(run):
    import numpy as np

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node

    apart = node("Sub", ["x", "labels"], ["d"], "apart")  # mistake
    nodes = [apart, node("Mul", ["d", "d"], ["s"], "squares"), node("ReduceMean", ["s"], ["y"], "mean", keepdims=0)]
    values = np.arange(17, dtype=np.float32)
    return run(graph(nodes, {"x": (17, 1)}, {"labels": values}), {"x": values[:, None]})
