"""The hundredth GPU is asked for."""

SIDES = ("99|cuda:99|GPU:99|GPU.99|CUDA|GPU|CUDAExecutionProvider",)
OPERATORS = ()
ABSENT = {"numpy": "it has no devices"}


def torch(compiled):
    import torch

    @compiled
    def placed():
        return torch.zeros(2, device="cuda:99")  # mistake

    return placed()


def jax(compiled):
    import jax
    import jax.numpy as jnp

    device = jax.devices("cuda")[99]  # mistake
    return compiled(jnp.sin)(jax.device_put(jnp.zeros(2), device))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def placed():
        with tf.device("/GPU:99"):  # mistake
            return tf.zeros(2) + 1

    return placed()


def keras():
    import keras

    with keras.device("gpu:99"):  # mistake
        return keras.ops.zeros(2) + 1


def onnxruntime(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    model = graph([node("Sin", ["x"], ["y"], "sine")], {"x": (2,)}, {})
    return run(model, {"x": zeros(2)}, ("CUDAExecutionProvider", {"device_id": 99}))  # mistake


def openvino(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    model = graph([node("Sin", ["x"], ["y"], "sine")], {"x": (2,)}, {})
    return run(model, {"x": zeros(2)}, "GPU.99")  # mistake
