"""The second of three layers in a list, which are called together, takes another size than the first gives."""

SIDES = ((4, 19), (13, 23))
CLASH = (19, 13)
OPERATORS = ("matmul", "mm", "addmm", "dot", "dot_general", "gemm", "linear", "dense", "multiplied", "multiplication")
PART = {"torch": "second", "keras": "second"}
ABSENT = {"onnx": "a graph is such a list already, which layer_of_chain has"}


def numpy():
    import numpy as np

    layers = [
        np.zeros((17, 19)),
        np.zeros((13, 23)),  # mistake
        np.zeros((23, 5)),
    ]
    x = np.zeros((4, 17))
    for layer in layers:
        x = x @ layer
    return x


def torch(compiled):
    import torch
    from torch import nn

    model = nn.Sequential()
    model.add_module("first", nn.Linear(17, 19))
    model.add_module("second", nn.Linear(13, 23))  # mistake
    model.add_module("third", nn.Linear(23, 5))
    return compiled(model)(torch.zeros(4, 17))


def jax(compiled):
    import jax.numpy as jnp

    layers = [
        jnp.zeros((17, 19)),
        jnp.zeros((13, 23)),  # mistake
        jnp.zeros((23, 5)),
    ]

    @compiled
    def model(x):
        for layer in layers:
            x = x @ layer
        return x

    return model(jnp.zeros((4, 17)))


def tensorflow(compiled):
    import tensorflow as tf

    layers = [
        tf.zeros((17, 19)),
        tf.zeros((13, 23)),  # mistake
        tf.zeros((23, 5)),
    ]

    @compiled
    def model(x):
        for layer in layers:
            x = x @ layer
        return x

    return model(tf.zeros((4, 17)))


def keras():
    import keras

    second = keras.layers.Dense(23, name="second")
    second.build((None, 13))  # mistake
    model = keras.Sequential([keras.layers.Dense(19, name="first"), second, keras.layers.Dense(5, name="third")])
    return model(keras.ops.zeros((4, 17)))
