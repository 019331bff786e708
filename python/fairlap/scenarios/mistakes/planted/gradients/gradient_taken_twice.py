"""The gradient of one forward pass is taken twice."""

SIDES = ("twice|second time|one set|once|retain_graph|persistent",)
OPERATORS = ("backward", "gradient", "GradientTape")
MEANT = [4.0, 4.0, 4.0]
ABSENT = {
    "numpy": "it has no gradients",
    "jax": "a gradient is a function, which can be called again",
    "keras": "it takes gradients by its backend",
    "onnx": "a session has no gradients",
}


def torch(compiled):
    import torch

    w = torch.ones(3, requires_grad=True)
    loss = compiled(lambda w: (w * w).sum())(w)
    loss.backward()
    loss.backward()  # mistake
    return w.grad


def tensorflow(compiled):
    import tensorflow as tf

    w = tf.ones(3)
    loss = compiled(lambda w: tf.reduce_sum(w * w))
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = loss(w)
    first = tape.gradient(value, w)
    return first + tape.gradient(value, w)  # mistake
