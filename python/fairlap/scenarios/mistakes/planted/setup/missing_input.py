"""A model of two inputs is called with one; the input mask is missing."""

SIDES = ("mask",)
OPERATORS = ()
ABSENT = {"numpy": "it has no models, and functions are Python's"}


def torch(compiled):
    import torch

    class Model(torch.nn.Module):
        def forward(self, x, mask):
            return x * mask

    model = compiled(Model())
    return model(torch.zeros(2, 3))  # mistake


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def model(x, mask):
        return x * mask

    return model(jnp.zeros((2, 3)))  # mistake


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def model(x, mask):
        return x * mask

    return model(tf.zeros((2, 3)))  # mistake


def keras():
    import keras

    x, mask = keras.Input((3,), name="x"), keras.Input((3,), name="mask")
    model = keras.Model([x, mask], keras.layers.Multiply()([x, mask]))
    return model([keras.ops.zeros((2, 3))])  # mistake


def onnx(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    model = graph([node("Mul", ["x", "mask"], ["y"], "masked")], {"x": (2, 3), "mask": (2, 3)}, {})
    return run(model, {"x": zeros(2, 3)})  # mistake
