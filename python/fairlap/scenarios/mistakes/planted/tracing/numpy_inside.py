"""A function of NumPy is called on an array within what is compiled."""

SIDES = ("numpy|ndarray|np",)
OPERATORS = ("exp", "__array__")
MEANT = [1.0, 1.0, 1.0]
_NOT_TRACED = "nothing is traced"
ABSENT = {
    "numpy": _NOT_TRACED,
    "torch": _NOT_TRACED,
    "jax:jit=off": _NOT_TRACED,
    "tensorflow": _NOT_TRACED,
    "onnx": "a file is a graph, and holds no Python",
}


def torch(compiled):
    import numpy as np
    import torch

    @compiled
    def grown(x):
        return torch.as_tensor(np.exp(x.numpy())) * 1.0  # mistake

    return grown(torch.zeros(3))


def jax(compiled):
    import jax.numpy as jnp
    import numpy as np

    @compiled
    def grown(x):
        return np.exp(x) * 1.0  # mistake

    return grown(jnp.zeros(3))


def tensorflow(compiled):
    import numpy as np
    import tensorflow as tf

    @compiled
    def grown(x):
        return np.exp(x) * 1.0  # mistake

    return grown(tf.zeros(3))


def keras():
    import keras
    import numpy as np

    class Grown(keras.layers.Layer):
        def call(self, x):
            return np.exp(x) * 1.0  # mistake

    model = keras.Sequential([keras.Input((3,)), Grown()])
    return model.predict(np.zeros((1, 3)), verbose=0)[0]
