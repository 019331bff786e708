"""No mistake: the frameworks are loaded by it, and must get it right."""

SIDES = ()
OPERATORS = ()
MEANT = [[34.0]]


def numpy():
    import numpy as np

    return np.ones((1, 17)) @ np.full((17, 1), 2.0)


def torch(compiled):
    import torch

    return compiled(lambda x, w: x @ w)(torch.ones(1, 17), torch.full((17, 1), 2.0))


def jax(compiled):
    import jax.numpy as jnp

    return compiled(lambda x, w: x @ w)(jnp.ones((1, 17)), jnp.full((17, 1), 2.0))


def tensorflow(compiled):
    import tensorflow as tf

    return compiled(lambda x, w: x @ w)(tf.ones((1, 17)), tf.fill((17, 1), 2.0))


def keras():
    import keras
    import numpy as np

    layer = keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(2.0))
    return keras.Sequential([layer]).predict(np.ones((1, 17)), verbose=0)


def onnx(run):
    import numpy as np

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node

    ones = np.ones((1, 17), np.float32)
    product = node("MatMul", ["x", "w"], ["y"], "product")
    return run(graph([product], {"x": (1, 17)}, {"w": 2 * ones.T}), {"x": ones})
