"""The loss that a user names for a Keras model: one of Keras, or a function of the model's outputs and labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.errors import cause_of
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.learning.loss import one_number, own_loss
from fairlap.request.fields.loss import CODE
from fairlap.request.fields.source import Source

Own = Callable[[Any, Any], Any]


def loss_in_keras(source: Source, floats: str = "float32") -> Own | None:
    """Return a function of outputs and labels on the backend that this process has; None for a loss with a name.

    A ``keras.losses.Loss`` takes them in the other order, is of the first output, and computes in a type of its own.
    """
    found = own_loss(source)
    if found is None:
        return None
    import keras

    if isinstance(found, type) and issubclass(found, keras.losses.Loss):
        found = found()
    called = _in_order_of_keras(found, floats) if isinstance(found, keras.losses.Loss) else found

    def loss(outputs: Any, labels: Any) -> Any:
        try:
            value = called(outputs, labels)
        except Exception as error:  # of the user's code and of Keras
            on = f"Keras on {keras.backend.backend()}"
            why = "; keras.ops computes on each backend" if found is called else ""
            raise SourceError(f"--loss {source.loss} raised on {on}: {cause_of(error)}{why}", code=CODE) from error
        return one_number(value, source)

    return loss


def _in_order_of_keras(loss: Any, floats: str) -> Own:
    import keras

    typed = object.__new__(type(loss))  # a copy by copy.copy would be saved and loaded again
    vars(typed).update(vars(loss), _dtype=floats, _dtype_policy=keras.DTypePolicy(floats))

    def in_order(outputs: Any, labels: Any) -> Any:
        if labels is None:
            raise ValueError("it compares outputs with labels, and there are none: add --labels")
        return typed(labels, keras.tree.flatten(outputs)[0])

    return in_order
