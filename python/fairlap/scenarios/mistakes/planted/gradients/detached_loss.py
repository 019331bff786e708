"""The loss is computed from detached weights, so that no gradient reaches them."""

SIDES = ("grad|gradient|gradients|requires_grad|grad_fn",)
OPERATORS = ("detach", "stop_gradient", "StopGradient")
MEANT = [2.0, 2.0, 2.0]
ABSENT = {
    "numpy": "it has no gradients",
    "keras": "it takes gradients by its backend",
    "onnx": "a session has no gradients",
}


def torch(compiled):
    import torch

    @compiled
    def loss(w):
        w = w.detach()  # mistake
        return (w * w).sum()

    w = torch.ones(3, requires_grad=True)
    loss(w).backward()
    return w.grad


def jax(compiled):
    import jax
    import jax.numpy as jnp

    def loss(w):
        w = jax.lax.stop_gradient(w)  # mistake
        return (w * w).sum()

    return compiled(jax.grad(loss))(jnp.ones(3))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def loss(w):
        w = tf.stop_gradient(w)  # mistake
        return tf.reduce_sum(w * w)

    w = tf.ones(3)
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = loss(w)
    return tape.gradient(value, w)
