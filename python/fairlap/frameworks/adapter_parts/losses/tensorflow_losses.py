"""The losses of a model in TensorFlow, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fairlap.models.spec import LABELS, Loss
from fairlap.models.workload import Workload


def loss_of_batch(model: Any, work: Workload) -> Callable[[Any], Any]:

    # A model without running statistics is the same in training.
    learning = {"training": True} if work.spec.has_statistics() else {}

    def loss(batch: dict[str, Any]) -> Any:
        return loss_of(work.spec.loss, model(batch, **learning)[0], batch.get(LABELS))

    return loss


def loss_of(kind: Loss, output: Any, labels: Any) -> Any:
    import tensorflow as tf

    first = tf.cast(output, tf.float32)
    if kind == "mean_square":
        return tf.reduce_mean(tf.square(first))
    if kind == "square_error":
        return tf.reduce_mean(tf.math.squared_difference(first, labels))
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
