"""Saved weights have the key kernel where the model has weight."""

SIDES = ("kernel", "weight")
OPERATORS = ()
PART = {"torch": "Linear"}
ABSENT = {
    "numpy": "weights are in a dictionary of Python's",
    "keras": "its files name weights by their layer's class and order, not by a key of the user's",
    "onnx": "weights are part of the file",
}


def torch(compiled):
    import torch

    model = torch.nn.Linear(3, 1)
    model.load_state_dict({"kernel": torch.zeros(1, 3), "bias": torch.zeros(1)})  # mistake
    return compiled(model)(torch.zeros(2, 3))


def jax(compiled):
    import jax
    import jax.numpy as jnp

    weights = {"weight": jnp.zeros((3, 1)), "bias": jnp.zeros(1)}
    saved = {"kernel": jnp.zeros((3, 1)), "bias": jnp.zeros(1)}
    weights = jax.tree.map(lambda _own, new: new, weights, saved)  # mistake
    return compiled(lambda x: x @ weights["weight"])(jnp.zeros((2, 3)))


def tensorflow(compiled):
    import tempfile

    import tensorflow as tf

    weight = tf.Variable(tf.zeros((3, 1)))
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(kernel=tf.Variable(tf.ones((3, 1)))).write(f"{folder}/saved")
        tf.train.Checkpoint(weight=weight).read(path)  # mistake
    return compiled(lambda x: x @ weight)(tf.zeros((2, 3)))
