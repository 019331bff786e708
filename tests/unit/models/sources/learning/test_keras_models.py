"""Training of a user's Keras model against Keras's own loop in float64; which models are trained, and what of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
pytest.importorskip("keras", reason="`make test` installs it and runs this")

from fairlap.errors import FairlapError
from fairlap.models.sources.proof import InFloat64
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel, use_backend
from fairlap.models.training.reference import WEIGHT, Batch
from fairlap.request.fields.training import AdamW, Sgd, Training
from learning_sources import SUPPORT, opened_here

pytestmark = pytest.mark.slow

NETS = ("convolutional", "normalised", "louder", "partly_frozen")


@pytest.fixture(autouse=True)
def nets(monkeypatch: pytest.MonkeyPatch) -> Any:
    use_backend("tensorflow")
    monkeypatch.syspath_prepend(str(SUPPORT))
    import own_keras_nets

    return own_keras_nets


@contextmanager
def in_float64() -> Iterator[None]:
    import keras

    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    try:
        yield
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")


def optimizers() -> list[tuple[Sgd | AdamW, Callable[[], Any], float]]:
    """Pair what is asked for with Keras's own, and what weights may be off by, which move by the rate in each step.

    Keras rounds factors to float32 in float64 too, so they are such as that leaves alone. Its epsilon means another
    formula, which shows where a gradient is next to nothing.
    """
    from keras import optimizers as keras

    adamw = AdamW(lr=0.01, decay=0.125, beta1=0.875, beta2=127 / 128, epsilon=1e-12)
    return [
        (Sgd(lr=0.1, momentum=0.0), lambda: keras.SGD(0.1), 1e-9),
        (Sgd(lr=0.1, momentum=0.875), lambda: keras.SGD(0.1, momentum=0.875), 1e-9),
        (adamw, lambda: keras.AdamW(0.01, 0.125, 0.875, 127 / 128, 1e-12), 1e-4),
    ]


def train_on_batch(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
    model.compile(optimizer, keras_losses().SparseCategoricalCrossentropy(from_logits=True))
    for _ in range(3):
        model.train_on_batch(inputs, labels)


def on_a_tape(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
    """Take the gradient of a table whole: of its rows, Adam squares those of a token that is there twice on its own."""
    import tensorflow as tf

    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = keras_losses().SparseCategoricalCrossentropy(from_logits=True)(labels, model(inputs, training=True))
        gradients = tape.gradient(loss, [each.value for each in model.trainable_variables])
        optimizer.apply([tf.convert_to_tensor(each) for each in gradients], model.trainable_variables)


def keras_losses() -> Any:
    from keras import losses

    return losses


@pytest.mark.parametrize(("name", "loop"), [*((name, train_on_batch) for name in NETS), ("recurrent", on_a_tape)])
def test_steps_are_those_of_a_loop_in_keras(name: str, loop: Callable[..., None], nets: Any, tmp_path: Path) -> None:
    found = opened_here(f"own_keras_nets:{name}", "cross_entropy", tmp_path)
    batch = found.batch()
    for asked, of_keras, off in optimizers():
        got = found.exercise(Training(asked), *[batch] * 3).taken()
        with in_float64():
            by_hand = KerasModel(getattr(nets, name)())
            by_hand.assign(dict(InFloat64(found.weights)))
            loop(by_hand.model, of_keras(), by_hand.arguments(dict(InFloat64(batch.inputs))), batch.labels)
        trained = sum(weight.trained for weight in found.bundle.spec.weights)
        assert trained == len(by_hand.model.trainable_variables)
        for weight_name, array in by_hand.weights().items():
            assert array.dtype == np.float64
            np.testing.assert_allclose(got[WEIGHT + weight_name], array, rtol=0, atol=off)


@pytest.mark.parametrize("loss", ["smoothed", "sparse"])
def test_a_loss_of_one_s_own_is_computed_in_float64(loss: str, nets: Any, tmp_path: Path) -> None:
    import keras

    np.save(tmp_path / "labels.npy", np.array([3, 1, 4, 1]))
    found = opened_here("own_keras_nets:convolutional", f"own_keras_nets:{loss}", tmp_path, f"{tmp_path}/labels.npy")
    batch = found.batch()
    inputs = Batch(dict(InFloat64(batch.inputs)), batch.labels)
    got = found.slopes.slopes(dict(InFloat64(found.weights)), inputs, training=False)
    model = KerasModel(nets.convolutional())
    model.assign(found.weights)
    (scores,) = model(batch.inputs)
    probabilities = np.asarray(keras.ops.log_softmax(scores), np.float64)
    picked = -probabilities[np.arange(4), batch.labels].mean()
    expected = picked if loss == "sparse" else 0.9 * picked - 0.1 * probabilities.mean()
    assert got.loss == pytest.approx(expected, rel=1e-5)
    assert all(array.dtype == np.float64 for array in got.gradients.values())


def test_every_backend_runs_the_model_itself(tmp_path: Path) -> None:
    bundle = opened_here("own_keras_nets:normalised", "cross_entropy", tmp_path).bundle
    trains = {name for name, route in bundle.routes.items() if not route.why_not_in("fp32", "train")}
    assert trains == {"tensorflow", "jax", "torch"}
    fixed = {weight.name for weight in bundle.spec.weights if not weight.trained}
    assert fixed == {"normalised/moving_mean", "normalised/moving_variance"}


@pytest.mark.parametrize(("name", "why"), [("dropping", "dropout"), ("constrained", "head/kernel has a constraint")])
def test_what_frameworks_would_train_differently_has_gradients_alone(name: str, why: str, tmp_path: Path) -> None:
    assert why in opened_here(f"own_keras_nets:{name}", "cross_entropy", tmp_path).bundle.no_training


@pytest.mark.parametrize(
    ("name", "loss", "code"),
    [
        ("regularized", "cross_entropy", "E_LOSS"),
        ("convolutional", "own_keras_nets:per_item", "E_LOSS"),
        ("convolutional", "own_keras_nets:sparse", "E_LOSS"),  # without labels
        ("convolutional", "own_keras_nets:casting", "E_NO_GRADIENTS"),
    ],
)
def test_what_cannot_be_differentiated_is_refused(name: str, loss: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(FairlapError) as refused:
        opened_here(f"own_keras_nets:{name}", loss, tmp_path)
    assert refused.value.code == code


def test_code_for_a_file_that_is_not_trusted_is_not_run(nets: Any, tmp_path: Path) -> None:
    file = tmp_path / "net.keras"
    nets.convolutional().save(file)
    assert opened_here(str(file), "cross_entropy", tmp_path).bundle.no_training == ""
    with pytest.raises(FairlapError) as refused:
        opened_here(str(file), "own_keras_nets:smoothed", tmp_path)
    assert refused.value.code == "E_SOURCE_TRUST"
