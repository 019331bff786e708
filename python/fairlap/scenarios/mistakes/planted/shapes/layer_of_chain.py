"""The second of three layers, each called on its own line, takes another size than the first gives."""

SIDES = ((4, 19), (13, 23))
CLASH = (19, 13)
OPERATORS = ("matmul", "mm", "addmm", "dot", "dot_general", "gemm", "linear", "dense", "multiplied", "multiplication")
PART = {"keras": "second", "onnx": "second"}


def numpy():
    import numpy as np

    first, second, third = np.zeros((17, 19)), np.zeros((13, 23)), np.zeros((23, 5))
    x = np.zeros((4, 17)) @ first
    x = x @ second  # mistake
    return x @ third


def torch(compiled):
    import torch
    from torch import nn

    first, second, third = nn.Linear(17, 19), nn.Linear(13, 23), nn.Linear(23, 5)

    @compiled
    def model(x):
        x = first(x)
        x = second(x)  # mistake
        return third(x)

    return model(torch.zeros(4, 17))


def jax(compiled):
    import jax.numpy as jnp

    first, second, third = jnp.zeros((17, 19)), jnp.zeros((13, 23)), jnp.zeros((23, 5))

    @compiled
    def model(x):
        x = x @ first
        x = x @ second  # mistake
        return x @ third

    return model(jnp.zeros((4, 17)))


def tensorflow(compiled):
    import tensorflow as tf

    first, second, third = (tf.Variable(tf.zeros(shape)) for shape in ((17, 19), (13, 23), (23, 5)))

    @compiled
    def model(x):
        x = x @ first
        x = x @ second  # mistake
        return x @ third

    return model(tf.zeros((4, 17)))


def keras():
    import keras

    sizes = {"first": 19, "second": 23, "third": 5}
    first, second, third = (keras.layers.Dense(size, name=name) for name, size in sizes.items())
    second.build((None, 13))
    x = first(keras.ops.zeros((4, 17)))
    x = second(x)  # mistake
    return third(x)


def onnx(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    layers = [
        node("MatMul", ["x", "w1"], ["y1"], "first"),
        node("MatMul", ["y1", "w2"], ["y2"], "second"),  # mistake
        node("MatMul", ["y2", "w3"], ["y"], "third"),
    ]
    weights = {"w1": zeros(17, 19), "w2": zeros(13, 23), "w3": zeros(23, 5)}
    return run(graph(layers, {"x": ("n", 17)}, weights), {"x": zeros(4, 17)})
