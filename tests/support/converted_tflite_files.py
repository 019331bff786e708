"""LiteRT files as TensorFlow's converter makes them of Keras models: ``python converted_tflite_files.py FOLDER``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

IMAGE = (12, 12, 3)
LONG = 70  # steps: more than the importer puts one after the other
QUANTIZED = ("int8", "uint8", "int16", "dynamic")
RECURRENT = ("lstm", "gru")
OPEN = "open"  # sizes, which the convolution inside cannot take as 1, as which they stand in the file


def _convnet() -> Any:
    import keras

    keras.utils.set_random_seed(0)
    layers = keras.layers
    image = keras.Input(IMAGE, batch_size=2, name="image")
    hidden = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(image)
    other = layers.DepthwiseConv2D(3, padding="same")(hidden)
    hidden = layers.add([hidden, layers.BatchNormalization()(other)])
    hidden = layers.Conv2D(40, 1, activation="relu6")(hidden)
    hidden = layers.Dense(40, activation="tanh")(layers.GlobalAveragePooling2D()(hidden))
    return keras.Model(image, layers.Dense(30, activation="softmax")(hidden))


def _recurrent(kind: str) -> Any:
    import keras

    keras.utils.set_random_seed(0)
    layers = keras.layers
    x = keras.Input((LONG if kind == "lstm" else 5, 6), batch_size=2, name="x")
    made = layers.LSTM(4, return_sequences=True) if kind == "lstm" else layers.GRU(4)
    return keras.Model(x, made(x))


def _of_open_length() -> Any:
    import keras

    keras.utils.set_random_seed(0)
    sound = keras.Input((None, 1), name="sound")
    return keras.Model(sound, keras.layers.Conv1D(4, 5, strides=2)(sound))


def _images() -> Iterator[list[np.ndarray]]:
    random = np.random.default_rng(0)
    for _ in range(8):
        yield [random.standard_normal((2, *IMAGE)).astype(np.float32)]


def _write(folder: Path) -> None:
    import tensorflow as tf

    convnet = _convnet()
    for kind in QUANTIZED:
        converter = tf.lite.TFLiteConverter.from_keras_model(convnet)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if kind != "dynamic":
            converter.representative_dataset = _images
        if kind in ("int8", "uint8"):
            converter.inference_input_type = converter.inference_output_type = getattr(tf, kind)
        if kind == "int16":
            operators = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
            converter.target_spec.supported_ops = [operators]
        (folder / f"{kind}.tflite").write_bytes(converter.convert())
    for kind in RECURRENT:
        converter = tf.lite.TFLiteConverter.from_keras_model(_recurrent(kind))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        (folder / f"{kind}.tflite").write_bytes(converter.convert())
    converter = tf.lite.TFLiteConverter.from_keras_model(_of_open_length())
    (folder / f"{OPEN}.tflite").write_bytes(converter.convert())


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
