"""Gradients of a Keras model on TensorFlow by ``tf.GradientTape``, in float64 or float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Learner, SourceError
from fairlap.models.sources.learning.keras_loss import loss_in_keras
from fairlap.models.sources.learning.loss import NO_GRADIENTS, require_trusted_loss
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel, in_double, load_keras, use_backend
from fairlap.models.spec import Loss
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.loss import CODE
from fairlap.request.fields.source import Source

_FLOATS = {False: "float32", True: "float64"}


def learner_of_keras(file: Path, source: Source, kind: Loss, *, trust: bool) -> Learner:
    """Train what the model's layers have as trainable, of a file and of the model that it was saved from."""
    if not trust:
        require_trusted_loss(source)
    use_backend("tensorflow")
    model = KerasModel(load_keras(file, trust=trust))
    _require_no_further_loss(model)
    slopes = _SlopesOfKeras(model, in_double(file, trust=trust), source, kind)
    return Learner(
        slopes.trained,
        slopes,
        slopes.outputs,
        "tf.GradientTape on the Keras model in float64",
        _why_not_train(model),
        how_to_freeze="set trainable = False on layers that are not to be trained",
        cut_off_by="stop_gradient",
    )


def _why_not_train(model: KerasModel) -> str:
    bound = [each.path for each in model.model.trainable_variables if each.constraint is not None]
    if not bound:
        return ""
    return f"{bound[0]} has a constraint, which Keras's optimizers apply after each step, and others do not; remove it"


def _require_no_further_loss(model: KerasModel) -> None:
    """Refuse regularizers and ``add_loss``, which ``fit`` adds to the loss."""
    if count := len(model.model.losses):
        raise SourceError(
            f"the model adds {count} losses of its own, by regularizers or add_loss, which --loss does not contain; "
            "remove them, or give the decay of weights as --optimizer sgd:decay=0.01",
            code=CODE,
        )


class _SlopesOfKeras:
    def __init__(self, model: KerasModel, wide: KerasModel, source: Source, kind: Loss) -> None:
        self._models, self._kind = {False: model, True: wide}, kind
        self._own = {is_wide: loss_in_keras(source, floats) for is_wide, floats in _FLOATS.items()}
        learns = {id(variable) for variable in model.model.trainable_variables}
        self.trained = tuple(name for name, variable in model.variables.items() if id(variable) in learns)

    def __call__(self, weights: Arrays, batch: Batch, training: bool) -> Slopes:
        """Compute them one operation after the other, so that code which draws or counts shows that it does."""
        import keras
        import tensorflow as tf

        wide = any(array.dtype == np.float64 for array in weights.values())
        model = self._models[wide]
        model.assign(weights)
        inputs = {name: tf.constant(np.asarray(batch.inputs[name])) for name in model.inputs}
        trained = [model.variables[name].value for name in self.trained]
        before = keras.config.floatx()
        keras.config.set_floatx(_FLOATS[wide])  # of numbers in code that name no type
        try:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(trained)
                returned = model.returned(inputs, training=training)
                _require_no_further_loss(model)
                loss = self._loss(returned, model.flattened(returned)[0], batch, wide)
        finally:
            keras.config.set_floatx(before)
        if wide and loss.dtype != tf.float64:
            raise SourceError(
                f"in float64 the loss is {loss.dtype.name}, so nothing shows that gradients are right: a layer or the "
                "loss casts to a type of its own; cast to the type of an input or output instead",
                code=NO_GRADIENTS,
            )
        gradients = tape.gradient(loss, trained, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return Slopes(
            float(loss),
            {name: tf.convert_to_tensor(each).numpy() for name, each in zip(self.trained, gradients, strict=True)},
            {name: array for name, array in model.weights().items() if name not in self.trained},
        )

    def outputs(self, weights: Arrays, inputs: Arrays) -> dict[str, Any]:
        import keras

        model, before = self._models[True], keras.config.floatx()
        model.assign(weights)
        keras.config.set_floatx("float64")
        try:
            found = model({name: np.asarray(inputs[name]) for name in model.inputs})
        finally:
            keras.config.set_floatx(before)
        return {name: np.asarray(each) for name, each in zip(model.outputs, found, strict=True)}

    def _loss(self, returned: Any, first: Any, batch: Batch, wide: bool) -> Any:
        """Compute a loss with a name by its formula, without TensorFlow's own, which contestants call."""
        import tensorflow as tf

        labels = None if batch.labels is None else tf.constant(np.asarray(batch.labels))
        own = self._own[wide]
        if own is not None:
            if wide and labels is not None and labels.dtype.is_floating:
                labels = tf.cast(labels, tf.float64)
            return own(returned, labels)
        assert labels is not None
        if self._kind == "square_error":
            return tf.reduce_mean(tf.square(first - tf.cast(labels, first.dtype)))
        shares = first - tf.reduce_logsumexp(first, axis=-1, keepdims=True)
        return -tf.reduce_mean(tf.gather(shares, labels, axis=-1, batch_dims=len(labels.shape)))
