"""The gradient of a matrix is taken, which is no loss."""

SIDES = ((17, 13), "scalar")
OPERATORS = ("backward", "grad", "gradient")
ABSENT = {
    "numpy": "it has no gradients",
    "keras": "it takes gradients by its backend",
    "onnx": "a session has no gradients",
}


def torch(compiled):
    import torch

    w = torch.ones(17, 13, requires_grad=True)
    loss = compiled(lambda w: w * w)(w)
    loss.backward()  # mistake
    return w.grad


def jax(compiled):
    import jax
    import jax.numpy as jnp

    slope = compiled(jax.grad(lambda w: w * w))
    return slope(jnp.ones((17, 13)))  # mistake


def tensorflow(compiled):
    import tensorflow as tf

    w = tf.ones((17, 13))
    loss = compiled(lambda w: w * w)
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = loss(w)
    return tape.gradient(value, w)  # mistake
