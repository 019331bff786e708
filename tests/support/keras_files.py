"""Small Keras files as users bring them. Keras runs on TensorFlow here, as where a file is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlap.models.sources.tensorflow_files.keras_models import use_backend

ROWS, WIDTH, CLASSES = 30, 8, 4


def lookup(path: Path, *, dtype: str = "float32", last: Any = None) -> Path:
    """``ids`` of (batch, 5) look up a table and are averaged, ``x`` of (batch, 8) is added; a matrix and a softmax."""
    use_backend("tensorflow")
    import keras

    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(dtype)
    try:
        ids, x = keras.Input((5,), name="ids", dtype="int32"), keras.Input((WIDTH,), name="x", dtype="float32")
        rows = keras.layers.Embedding(ROWS, WIDTH, name="table")(ids)
        found = keras.layers.Add()([keras.layers.GlobalAveragePooling1D()(rows), x])
        found = keras.layers.Dropout(0.5)(keras.layers.LayerNormalization(name="norm")(found))
        found = keras.layers.Dense(CLASSES, activation="softmax", name="out")(found)
        keras.Model({"ids": ids, "x": x}, found if last is None else last(found)).save(path)
    finally:
        keras.config.set_dtype_policy("float32")
    return path
