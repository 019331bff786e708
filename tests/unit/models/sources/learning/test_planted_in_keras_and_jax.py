"""Mistakes of loops by hand, planted in the adapters that train a Keras model and a JAX function, are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import msgspec
import numpy as np
import pytest
from machine_marks import needs

needs("tensorflow", "keras", "jax", "optax")

from fairlap.frameworks.adapter_parts.losses import jax_losses, tensorflow_losses  # noqa: E402
from fairlap.frameworks.adapter_parts.training import jax_training  # noqa: E402
from fairlap.frameworks.adapter_parts.training.tensorflow_training import TensorFlowTraining  # noqa: E402
from fairlap.frameworks.contract import Framework, Settings  # noqa: E402
from fairlap.frameworks.libraries import jax as jax_adapter  # noqa: E402
from fairlap.frameworks.libraries import tensorflow as tensorflow_adapter  # noqa: E402
from fairlap.models.sources.tensorflow_files.keras_models import use_backend  # noqa: E402
from fairlap.models.training.check import TrainingCheck  # noqa: E402
from fairlap.race.equal_work import answers  # noqa: E402
from fairlap.race.equal_work.training_answers import state_errors  # noqa: E402
from fairlap.request.fields.training import AdamW, Sgd, Training  # noqa: E402
from fairlap.scenarios.process_result import AnswerError  # noqa: E402
from learning_sources import SUPPORT, OpenedHere, opened_here  # noqa: E402
from own_model_contestants import STEPS, answer, workload  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SGD = Training(Sgd(lr=0.05, momentum=0.9))
ADAMW = Training(AdamW(lr=0.01, epsilon=1e-6))
Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], OpenedHere]]:
    found: dict[str, OpenedHere] = {}

    def once(name: str) -> OpenedHere:
        if name not in found:
            found[name] = opened_here(name, "cross_entropy", tmp_path_factory.mktemp("opened"))
        return found[name]

    use_backend("tensorflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.syspath_prepend(str(SUPPORT))
        yield once


@pytest.fixture(autouse=True)
def _threads_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow sets them once in a process, and computed the reference in this one."""
    import tensorflow as tf

    for name in ("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"):
        monkeypatch.setattr(tf.config.threading, name, lambda _: None)


def sums_in_tensorflow(patch: pytest.MonkeyPatch) -> None:
    right = tensorflow_losses.loss_of
    patch.setattr(tensorflow_losses, "loss_of", lambda kind, output, labels: 4 * right(kind, output, labels))


def forgets_training(patch: pytest.MonkeyPatch) -> None:
    right = tensorflow_losses.loss_of_batch
    patch.setattr(tensorflow_adapter, "loss_of_batch", lambda model, kind, *_: right(model, kind))


def stops_a_gradient(patch: pytest.MonkeyPatch) -> None:
    import keras

    right = keras.layers.Dense.kernel
    stopped = property(lambda self: keras.ops.stop_gradient(right.fget(self)))
    patch.setattr(keras.layers.Dense, "kernel", stopped)


def with_default_of_keras(**defaults: float) -> Plant:
    """Leave out what was asked of the optimizer."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = TensorFlowTraining.__init__

        def planted(self: TensorFlowTraining, work: Any, *given: Any, **named: Any) -> None:
            right(self, work, *given, **named)
            changed = msgspec.structs.replace(work.training.optimizer, **defaults)
            self._training = msgspec.structs.replace(work.training, optimizer=changed)

        patch.setattr(TensorFlowTraining, "__init__", planted)

    return plant


def sums_in_jax(patch: pytest.MonkeyPatch) -> None:
    right = jax_losses.loss_of
    patch.setattr(jax_losses, "loss_of", lambda kind, first, labels: 4 * right(kind, first, labels))


def stops_a_gradient_in_jax(patch: pytest.MonkeyPatch) -> None:
    import jax
    from fairlap.models.sources.python_models.jax_source import Params

    right = Params.with_weights

    def planted(self: Params, weights: Any) -> Any:
        return right(self, {**weights, "head.kernel": jax.lax.stop_gradient(weights["head.kernel"])})

    patch.setattr(Params, "with_weights", planted)


def with_default_of_optax(**defaults: float) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        right = jax_training._optimizer

        def planted(optax: Any, training: Training) -> Any:
            changed = msgspec.structs.replace(training.optimizer, **defaults)
            return right(optax, msgspec.structs.replace(training, optimizer=changed))

        patch.setattr(jax_training, "_optimizer", planted)

    return plant


def forgets_training_in_jax(patch: pytest.MonkeyPatch) -> None:
    from fairlap.models.sources.python_models.jax_models import _Native

    right = _Native.forward
    patch.setattr(_Native, "forward", lambda self, params, inputs, _statistics=None: right(self, params, inputs))


def shifts_labels(patch: pytest.MonkeyPatch) -> None:
    from jax import numpy as jnp

    right = jax_losses.loss_of
    patch.setattr(jax_losses, "loss_of", lambda kind, first, labels: right(kind, first, jnp.roll(labels, 1)))


IN_KERAS: dict[str, tuple[Plant, str, Training, str]] = {
    "adds-up": (sums_in_tensorflow, "convolutional", SGD, "adds up the loss"),
    "no-training": (forgets_training, "normalised", SGD, "running averages"),
    "stop-gradient": (stops_a_gradient, "convolutional", SGD, "does not train head/kernel"),
    "momentum": (with_default_of_keras(momentum=0.0), "convolutional", SGD, "without momentum"),
    "epsilon": (with_default_of_keras(epsilon=1e-7), "convolutional", ADAMW, "epsilon is 0.1 times"),
}
IN_JAX: dict[str, tuple[Plant, str, Training, str]] = {
    "adds-up": (sums_in_jax, "convolutional", SGD, "adds up the loss"),
    "no-training": (forgets_training_in_jax, "normalised", SGD, "running averages"),
    "stop-gradient": (stops_a_gradient_in_jax, "convolutional", SGD, "does not train head.kernel"),
    "momentum": (with_default_of_optax(momentum=0.0), "convolutional", SGD, "without momentum"),
    "epsilon": (with_default_of_optax(epsilon=1e-7), "convolutional", ADAMW, "epsilon is 0.1 times"),
    "labels": (shifts_labels, "convolutional", SGD, "labels are shifted"),
}


def state_after(found: OpenedHere, framework: type[Framework], training: Training) -> dict[str, Any]:
    work = workload(found.folder, "train", training)
    made = framework().prepare(work, Settings(2), lambda _: nullcontext())
    state = answer(work, made, [workload(found.folder, "train", training, which) for which in STEPS])
    return {name: np.asarray(array, np.float32) for name, array in state.items()}


def require_named(found: OpenedHere, framework: type[Framework], plant: Plant, training: Training, why: str) -> None:
    """Compute the reference, which some mistakes would change in this process too, without them."""
    check = TrainingCheck(found.exercise(training, *[found.batch(which) for which in STEPS]))
    right: list[AnswerError] = state_errors(check, state_after(found, framework, training), "before")
    assert all(error.right for error in right)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        state = state_after(found, framework, training)
    with pytest.raises(answers.OtherWork) as refused:
        answers.require_right(state_errors(check, state, "before"), {})
    assert (refused.value.code, why in str(refused.value)) == ("E_TRAINING", True), str(refused.value)


@pytest.mark.parametrize(("plant", "name", "training", "why"), IN_KERAS.values(), ids=IN_KERAS)
def test_a_mistake_in_steps_of_a_keras_model_is_named(
    opened: Any, plant: Plant, name: str, training: Training, why: str
) -> None:
    found = opened(f"own_keras_nets:{name}")
    require_named(found, tensorflow_adapter.TensorFlow, plant, training, why)


@pytest.mark.parametrize(("plant", "name", "training", "why"), IN_JAX.values(), ids=IN_JAX)
def test_a_mistake_in_steps_of_a_jax_function_is_named(
    opened: Any, plant: Plant, name: str, training: Training, why: str
) -> None:
    require_named(opened(f"own_jax_nets:{name}"), jax_adapter.Jax, plant, training, why)
