"""Rows of a table of embeddings are looked up by indices that are floating-point numbers."""

SIDES = ("float|float32|float64|double|f32|f64", "int|integer|long|int32|int64")
OPERATORS = ("embedding", "gather", "take", "index", "indices", "indexer", "indexing", "ResourceGather")


def numpy():
    import numpy as np

    table, words = np.zeros((37, 5)), np.array([0.0, 2.0])
    return table[words]  # mistake


def torch(compiled):
    import torch
    import torch.nn.functional as F

    @compiled
    def looked_up(words, table):
        return F.embedding(words, table)  # mistake

    return looked_up(torch.tensor([0.0, 2.0]), torch.zeros(37, 5))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def looked_up(words, table):
        return table[words]  # mistake

    return looked_up(jnp.array([0.0, 2.0]), jnp.zeros((37, 5)))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def looked_up(words, table):
        return tf.gather(table, words)  # mistake

    return looked_up(tf.constant([0.0, 2.0]), tf.zeros((37, 5)))


def keras():
    import keras

    table = keras.layers.Embedding(37, 5)
    return table(keras.ops.convert_to_tensor([0.5, 2.5]))  # mistake


def onnx(run):
    import numpy as np

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    looked_up = node("Gather", ["table", "x"], ["y"], "looked_up")  # mistake
    return run(graph([looked_up], {"x": (2,)}, {"table": zeros(37, 5)}), {"x": np.array([0, 2], np.float32)})
