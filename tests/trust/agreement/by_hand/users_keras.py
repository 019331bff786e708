"""A model as a user of Keras writes it."""

import keras


def network():
    image = keras.Input((64, 64, 3), batch_size=8)
    hidden = keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(image)
    for channels in (32, 64):
        hidden = keras.layers.Conv2D(channels, 3, padding="same", use_bias=False)(hidden)
        hidden = keras.layers.ReLU()(keras.layers.BatchNormalization()(hidden))
        hidden = keras.layers.MaxPooling2D(2)(hidden)
    return keras.Model(image, keras.layers.Dense(10)(keras.layers.GlobalAveragePooling2D()(hidden)))
