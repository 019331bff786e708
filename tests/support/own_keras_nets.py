"""Networks of one's own in Keras, as a user of ``fairlap compare own_keras_nets:convolutional`` would write them."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

BATCH, CLASSES, TOKENS, VOCABULARY, WIDTH = 4, 10, 6, 20, 16


class LouderInTraining(layers.Layer):  # type: ignore[misc]
    """The same numbers each time, and others in training, without averages."""

    def call(self, states: Any, training: bool = False) -> Any:
        return 1.5 * states if training else states


def _image_net(*further: Any, normalisation: Any = None, last: Any = None) -> Any:
    keras.utils.set_random_seed(0)
    image = keras.Input((12, 12, 3), batch_size=BATCH, name="image")
    states = layers.Conv2D(8, 3, padding="same", name="first")(image)
    states = (normalisation or layers.GroupNormalization(4, name="normalised"))(states)
    states = layers.MaxPooling2D(2)(layers.Activation("gelu")(states))
    states = layers.GlobalAveragePooling2D()(layers.Conv2D(8, 3, activation="relu", name="second")(states))
    for layer in further:
        states = layer(states)
    return keras.Model(image, (last or layers.Dense(CLASSES, name="head"))(states))


def convolutional() -> Any:
    return _image_net()


def normalised() -> Any:
    return _image_net(normalisation=layers.BatchNormalization(name="normalised"))


def dropping() -> Any:
    return _image_net(layers.Dropout(0.1))


def louder() -> Any:
    return _image_net(LouderInTraining())


def regularized() -> Any:
    return _image_net(last=layers.Dense(CLASSES, kernel_regularizer="l2"))


def constrained() -> Any:
    return _image_net(last=layers.Dense(CLASSES, name="head", kernel_constraint="max_norm"))


def partly_frozen() -> Any:
    model = convolutional()
    model.get_layer("first").trainable = False
    return model


def recurrent() -> Any:
    """Look up tokens, and mix them by attention and an LSTM."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((TOKENS,), batch_size=BATCH, name="ids", dtype="int32")
    states = layers.Embedding(VOCABULARY, WIDTH, name="table")(ids)
    attention = layers.MultiHeadAttention(2, WIDTH // 2, name="attention")
    states = layers.LayerNormalization(name="norm")(states + attention(states, states, use_causal_mask=True))
    states = layers.LSTM(WIDTH, return_sequences=True, name="lstm")(states)
    return keras.Model(ids, layers.Dense(VOCABULARY, name="head")(states))


def smoothed(outputs: Any, labels: Any) -> Any:
    """Cross-entropy with a tenth of each label spread over all classes."""
    wanted = 0.9 * keras.ops.one_hot(labels, outputs.shape[-1], dtype=outputs.dtype) + 0.1 / outputs.shape[-1]
    return -keras.ops.mean(keras.ops.sum(wanted * keras.ops.log_softmax(outputs), axis=-1))


def per_item(outputs: Any, labels: Any) -> Any:
    return keras.ops.mean(outputs, axis=-1)


def casting(outputs: Any, labels: Any) -> Any:
    return keras.ops.mean(keras.ops.square(keras.ops.cast(outputs, "float32")))


sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
