"""Of 37 classes, one label is 71."""

SIDES = ("71", "37|36")
OPERATORS = ("cross_entropy", "nll_loss", "label", "target", "SparseSoftmaxCrossEntropyWithLogits")
ABSENT = {"onnx": "a session infers, without labels"}


def numpy():
    import numpy as np

    scores, labels = np.zeros((4, 37)), np.array([0, 1, 2, 71])
    chosen = scores[np.arange(4), labels]  # mistake
    return np.mean(np.log(np.exp(scores).sum(1)) - chosen)


def torch(compiled):
    import torch
    import torch.nn.functional as F

    @compiled
    def loss(scores, labels):
        return F.cross_entropy(scores, labels)  # mistake

    return loss(torch.zeros(4, 37), torch.tensor([0, 1, 2, 71]))


def jax(compiled):
    import jax.numpy as jnp
    from jax.nn import log_softmax

    @compiled
    def loss(scores, labels):
        return -jnp.take_along_axis(log_softmax(scores), labels[:, None], 1).mean()  # mistake

    return loss(jnp.zeros((4, 37)), jnp.array([0, 1, 2, 71]))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def loss(scores, labels):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)  # mistake

    return loss(tf.zeros((4, 37)), tf.constant([0, 1, 2, 71]))


def keras():
    import keras

    scores, labels = keras.ops.zeros((4, 37)), keras.ops.convert_to_tensor([0, 1, 2, 71])
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, scores)  # mistake
