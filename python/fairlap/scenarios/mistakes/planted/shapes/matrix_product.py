"""Two matrices are multiplied whose inner sizes differ."""

SIDES = ((4, 17), (13, 6))
CLASH = (17, 13)
OPERATORS = ("matmul", "mm", "addmm", "dot", "dot_general", "gemm", "multiplied", "multiplication")


def numpy():
    import numpy as np

    x, w = np.zeros((4, 17)), np.zeros((13, 6))
    return x @ w  # mistake


def torch(compiled):
    import torch

    @compiled
    def product(x, w):
        return x @ w  # mistake

    return product(torch.zeros(4, 17), torch.zeros(13, 6))


def jax(compiled):
    import jax.numpy as jnp

    @compiled
    def product(x, w):
        return x @ w  # mistake

    return product(jnp.zeros((4, 17)), jnp.zeros((13, 6)))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def product(x, w):
        return x @ w  # mistake

    return product(tf.zeros((4, 17)), tf.zeros((13, 6)))


def keras():
    from keras import ops

    x, w = ops.zeros((4, 17)), ops.zeros((13, 6))
    return ops.matmul(x, w)  # mistake


def onnx(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    product = node("MatMul", ["x", "w"], ["y"], "product")  # mistake
    return run(graph([product], {"x": (4, 17)}, {"w": zeros(13, 6)}), {"x": zeros(4, 17)})
