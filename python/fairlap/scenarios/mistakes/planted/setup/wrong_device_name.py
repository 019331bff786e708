"""A device is named that no framework knows: cudda."""

SIDES = ("cudda|/cudda:0|cudda:0|CuddaExecutionProvider", "cpu|CPUExecutionProvider")
OPERATORS = ()
ABSENT = {"numpy": "it has no devices"}


def torch(compiled):
    import torch

    @compiled
    def placed():
        return torch.zeros(2, device="cudda:0")  # mistake

    return placed()


def jax(compiled):
    import jax
    import jax.numpy as jnp

    device = jax.devices("cudda")[0]  # mistake
    return compiled(jnp.sin)(jax.device_put(jnp.zeros(2), device))


def tensorflow(compiled):
    import tensorflow as tf

    @compiled
    def placed():
        with tf.device("/cudda:0"):  # mistake
            return tf.zeros(2)

    return placed()


def keras():
    import keras

    with keras.device("cudda:0"):  # mistake
        return keras.ops.zeros(2)


def onnxruntime(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    model = graph([node("Sin", ["x"], ["y"], "sine")], {"x": (2,)}, {})
    return run(model, {"x": zeros(2)}, "CuddaExecutionProvider")  # mistake


def openvino(run):
    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    model = graph([node("Sin", ["x"], ["y"], "sine")], {"x": (2,)}, {})
    return run(model, {"x": zeros(2)}, "CUDDA")  # mistake
