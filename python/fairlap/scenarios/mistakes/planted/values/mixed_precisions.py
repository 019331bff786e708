"""A float32 matrix is multiplied with a float64 one, as NumPy makes it. NumPy's rules widen the first."""

SIDES = ("float|float32|f32", "double|float64|f64")
OPERATORS = ("matmul", "mm", "addmm", "dot", "dot_general", "gemm", "multiplied", "multiplication")
MEANT = [[17.0]]


def numpy():
    import numpy as np

    x, w = np.ones((1, 17), np.float32), np.ones((17, 1))
    return x @ w  # mistake


def torch(compiled):
    import numpy as np
    import torch

    @compiled
    def product(x, w):
        return x @ w  # mistake

    return product(torch.ones(1, 17), torch.from_numpy(np.ones((17, 1))))


def jax(compiled):
    import jax.numpy as jnp
    import numpy as np

    @compiled
    def product(x, w):
        return x @ w  # mistake

    return product(jnp.ones((1, 17)), np.ones((17, 1)))


def tensorflow(compiled):
    import numpy as np
    import tensorflow as tf

    @compiled
    def product(x, w):
        return x @ w  # mistake

    return product(tf.ones((1, 17)), tf.constant(np.ones((17, 1))))


def keras():
    import numpy as np
    from keras import ops

    x, w = ops.ones((1, 17)), np.ones((17, 1))
    return ops.matmul(x, w)  # mistake


def onnx(run):
    import numpy as np

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node

    product = node("MatMul", ["x", "w"], ["y"], "product")  # mistake
    return run(graph([product], {"x": (1, 17)}, {"w": np.ones((17, 1))}), {"x": np.ones((1, 17), np.float32)})
