"""A Keras model whose drawn weights hide its inputs gets weights that keep its signal, and others stay as they are."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.sources.tensorflow_files.keras_models import use_backend
from onnx_files import opened, source_of

# Found, not imported: every process of pytest imports this file, and only one of them runs it.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(find_spec, ("tensorflow", "keras"))),
        reason="`make test` installs TensorFlow and Keras and runs this",
    ),
]

SIDE, CHANNELS, CLASSES, DEPTH = 6, 32, 5, 8


def saved(file: Path, *layers: Any) -> dict[str, np.ndarray]:
    """Write a model of these layers; returns its weights by their names."""
    import keras

    model = keras.Sequential([keras.Input((SIDE, SIDE, CHANNELS), name="x"), *layers])
    model.save(file)
    return {"/".join(each.path.split("/")[-2:]): np.asarray(each.numpy()) for each in model.variables}


def shrinking(file: Path) -> dict[str, np.ndarray]:
    """Depthwise convolutions as Keras draws them, and a softmax."""
    use_backend("tensorflow")
    import keras

    keras.utils.set_random_seed(0)
    deep = [
        keras.layers.DepthwiseConv2D(3, padding="same", use_bias=False, activation="relu", name=f"deep_{number}")
        for number in range(DEPTH)
    ]
    last = keras.layers.Dense(CLASSES, activation="softmax", name="scores")
    return saved(file, *deep, keras.layers.GlobalAveragePooling2D(), last)


def by_hand(held: dict[str, np.ndarray], values: np.ndarray) -> np.ndarray:
    """Loops over the places of each kernel, in float64."""
    values = values.astype(np.float64)
    for number in range(DEPTH):
        kernel = held[f"deep_{number}/kernel"].astype(np.float64)[..., 0]
        wide = np.pad(values, ((0, 0), (1, 1), (1, 1), (0, 0)))
        places = [(row, column) for row in range(3) for column in range(3)]
        values = sum(wide[:, r : r + SIDE, c : c + SIDE] * kernel[r, c] for r, c in places)
        values = np.maximum(values, 0)
    scores = values.mean((1, 2)) @ held["scores/kernel"].astype(np.float64) + held["scores/bias"]
    exponents = np.exp(scores - scores.max(1, keepdims=True))
    answers: np.ndarray = exponents / exponents.sum(1, keepdims=True)
    return answers


def test_weights_that_hide_the_inputs_are_multiplied_by_powers_of_two(tmp_path: Path) -> None:
    drawn = shrinking(tmp_path / "m.keras")
    folder, found = opened(source_of(tmp_path / "m.keras", batch=2), tmp_path)
    assert [notice.code for notice in found.notices] == ["W_WEIGHTS_SCALED"]
    held = safetensors.read(weights_file(folder))
    for name, array in drawn.items():
        nonzero = array != 0
        factors = np.unique(held[name][nonzero] / array[nonzero])
        assert len(factors) <= 1
        assert all(np.log2(factors) % 1 == 0)
    assert not np.array_equal(held["deep_0/kernel"], drawn["deep_0/kernel"])
    (name,) = (tensor.name for tensor in found.spec.outputs)
    answers = []
    for which in ("inputs", "changed"):
        answers.append(by_hand(held, safetensors.read(inputs_file(folder, which))["x"]))
        reference = safetensors.read(reference_file(folder, which))[name]
        np.testing.assert_allclose(reference, answers[-1], rtol=1e-10)
    inputs = safetensors.read(inputs_file(folder, "inputs"))["x"]
    as_drawn = [by_hand(drawn, each) for each in (inputs, inputs[::-1])]
    assert np.abs(as_drawn[1] - as_drawn[0]).max() < 1e-5  # what made them indistinguishable
    assert np.abs(answers[1] - answers[0]).max() > 1e-3


def test_what_is_compared_by_its_own_weights_keeps_them(tmp_path: Path) -> None:
    drawn = shrinking(tmp_path / "m.keras")
    folder, found = opened(source_of(tmp_path / "m.keras", batch=2, exported=True), tmp_path)
    assert "W_WEIGHTS_SCALED" not in [notice.code for notice in found.notices]
    np.testing.assert_array_equal(safetensors.read(weights_file(folder))["deep_0/kernel"], drawn["deep_0/kernel"])


def test_a_saturated_model_keeps_its_weights(tmp_path: Path) -> None:
    use_backend("tensorflow")
    import keras

    keras.utils.set_random_seed(0)
    sure = keras.layers.Dense(1, activation="sigmoid", bias_initializer=keras.initializers.Constant(90.0), name="sure")
    drawn = saved(tmp_path / "m.keras", keras.layers.Flatten(), sure)
    folder, found = opened(source_of(tmp_path / "m.keras", batch=2), tmp_path)
    assert [notice.code for notice in found.notices] == ["W_WEAK_PROOF"]
    np.testing.assert_array_equal(safetensors.read(weights_file(folder))["sure/kernel"], drawn["sure/kernel"])
