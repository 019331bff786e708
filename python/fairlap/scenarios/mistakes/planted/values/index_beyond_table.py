"""A table of embeddings has 37 rows, and row 71 is looked up."""

SIDES = ("71", "37|36")
OPERATORS = ("embedding", "gather", "take", "index", "indices", "indexing", "ResourceGather")


def numpy():
    import numpy as np

    table, words = np.zeros((37, 5)), np.array([0, 71])
    return table[words]  # mistake


def torch(compiled):
    import torch
    import torch.nn.functional as F

    @compiled
    def looked_up(words, table):
        return F.embedding(words, table)  # mistake

    return looked_up(torch.tensor([0, 71]), torch.zeros(37, 5))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def looked_up(words, table):
        return table[words]  # mistake

    return looked_up(jnp.array([0, 71]), jnp.zeros((37, 5)))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def looked_up(words, table):
        return tf.gather(table, words)  # mistake

    return looked_up(tf.constant([0, 71]), tf.zeros((37, 5)))


def keras():
    import keras

    table = keras.layers.Embedding(37, 5)
    return table(keras.ops.convert_to_tensor([0, 71]))  # mistake


def onnx(run):
    import numpy as np

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    whole = node("Cast", ["x"], ["words"], "whole", to=7)
    looked_up = node("Gather", ["table", "words"], ["y"], "looked_up")  # mistake
    return run(graph([whole, looked_up], {"x": (2,)}, {"table": zeros(37, 5)}), {"x": np.array([0, 71], np.float32)})
