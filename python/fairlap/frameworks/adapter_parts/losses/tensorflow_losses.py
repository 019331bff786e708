"""The losses of a model in TensorFlow, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fairlap.models.spec import LABELS, Loss


def loss_of_labelled(loss: Callable[[Any, Any], Any], batch: dict[str, Any]) -> Any:
    return loss(batch.get(LABELS), batch)


def loss_of_batch(model: Any, kind: Loss, learning: Mapping[str, bool] = MappingProxyType({})) -> Callable[..., Any]:
    """Of labels and inputs. A user's own loss is computed by the model, of whatever it returns."""

    def loss(labels: Any, inputs: dict[str, Any]) -> Any:
        return loss_of(kind, model(inputs, **learning)[0], labels)

    def own(labels: Any, inputs: dict[str, Any]) -> Any:
        return model.own_loss(labels, inputs, **learning)

    return own if kind == "own" else loss


def loss_of(kind: Loss, output: Any, labels: Any) -> Any:
    import tensorflow as tf

    first = tf.cast(output, tf.float32)
    if kind == "mean_square":
        return tf.reduce_mean(tf.square(first))
    if kind == "square_error":
        return tf.reduce_mean(tf.math.squared_difference(first, labels))
    if kind == "ctc":
        lengths = tf.math.count_nonzero(labels, axis=1, dtype=tf.int32)
        counts = tf.fill([tf.shape(first)[0]], tf.shape(first)[1])
        found = tf.nn.ctc_loss(labels, first, lengths, counts, logits_time_major=False, blank_index=0)
        return tf.reduce_mean(found / tf.cast(tf.maximum(lengths, 1), found.dtype))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, first))


def with_gradients(loss_of: Callable[[Any], Any], trained: Sequence[Any]) -> Callable[[Any], tuple[Any, list[Any]]]:
    """Of a batch the loss, and its gradients by the variables that are trained."""
    import tensorflow as tf

    def differentiate(batch: Any) -> tuple[Any, list[Any]]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(trained)
            loss = loss_of(batch)
        gradients = tape.gradient(loss, trained, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        # A lookup's gradient comes as rows with their places; the others' is whole, and so must this be.
        return loss, [tf.convert_to_tensor(each) for each in gradients]

    return differentiate
