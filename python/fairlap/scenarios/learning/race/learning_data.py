"""The labelled data of works that are trained to a score: chosen for the plan, and read again when it runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap import quantity_text
from fairlap.data.datasets import CHANGED
from fairlap.data.labelled.items import CODE, Items
from fairlap.data.labelled.labelled_set import LabelledSet, parted
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import InvalidRequest
from fairlap.models.registry import Model, find, follows_data
from fairlap.models.spec import Spec
from fairlap.request.fields.training_data import TrainingData
from fairlap.request.work import Work

E_TO_SCORE = "E_TO_SCORE"
_MOST_NAMED = 5


def data_to_learn(model: Model, text: str, fraction: float, notify: Callable[[str], None]) -> tuple[TrainingData, Spec]:
    """With the model in the sizes of the data. ``text`` is the model's own set if it is empty."""
    if not text and not model.spec.data_set:
        raise InvalidRequest(
            f"{model.spec.name} has no labelled data; name some with --train-on, or race digits, tabular, mnist or "
            "characters",
            code=E_TO_SCORE,
        )
    if not 0 < fraction <= 1:
        raise InvalidRequest(f"the fraction of the items must be above 0 and at most 100 % (got {fraction:g})")
    named = data_named(text or model.spec.data_set)
    items = items_in(named)
    sizes = items.sizes if follows_data(model.package) else None
    spec = find(model.spec.name, sizes).spec
    _require_fit(items, spec, named.text)
    data = msgspec.structs.replace(named, fraction=fraction, hash=items.hash, sizes=sizes)
    if named.path:
        notify(_described(items, parted(items, _names(spec), fraction), named))
    return data, spec


def labelled(work: Work, spec: Spec) -> LabelledSet:
    """Read once in a process. Raises InvalidRequest for data that are not those of the plan."""
    assert work.train_on is not None
    return _labelled(work.train_on, _names(spec))


@cache
def _labelled(data: TrainingData, names: tuple[str, ...]) -> LabelledSet:
    items = items_in(data)
    if items.hash != data.hash:
        raise InvalidRequest(
            f"{data.text} is not the data of the plan (hash {data.hash[:12]}, now {items.hash[:12]}); restore the "
            "data, or start a new run",
            code=CHANGED,
        )
    return parted(items, names, data.fraction)


def require_same_data(work: Work) -> None:
    """Raise InvalidRequest for data that are not those of the plan."""
    if work.train_on is not None:
        labelled(work, find(work.model, work.sizes).spec)


def _names(spec: Spec) -> tuple[str, ...]:
    return tuple(tensor.name for tensor in spec.inputs)


def _require_fit(items: Items, spec: Spec, data: str) -> None:
    inputs = items.named_for(_names(spec))
    if set(inputs) != set(_names(spec)):
        raise InvalidRequest(
            f"{data} has the inputs {', '.join(inputs)}; {spec.name} takes {', '.join(_names(spec))}", code=CODE
        )
    for tensor in spec.inputs:
        wanted, array = list(tensor.sized(1)[1:]), inputs[tensor.name]
        if list(array.shape[1:]) != wanted or np.dtype(tensor.dtype).kind != array.dtype.kind:
            raise InvalidRequest(
                f"an item of {data} is {_shape(array)}; {spec.name} takes {tensor.dtype} of the shape {wanted}",
                code=CODE,
            )
    outputs = spec.outputs[0].sized(1)
    classes = len(items.classes)
    if classes and (spec.loss != "cross_entropy" or classes > outputs[-1]):
        answers = f"{outputs[-1]} classes" if spec.loss == "cross_entropy" else "values"
        raise InvalidRequest(
            f"labels of {data} are out of range: {classes} classes; {spec.name} has {answers}", code=CODE
        )
    if not classes and (spec.loss != "square_error" or outputs[1:] != (1,)):
        raise InvalidRequest(f"{data} has a value for each item; {spec.name} does not learn values", code=CODE)


def _shape(array: npt.NDArray[Any]) -> str:
    return f"{array.dtype} of the shape {list(array.shape[1:])}"


def _described(items: Items, found: LabelledSet, data: TrainingData) -> str:
    """Summarize what was understood of a user's data."""
    named = ", ".join(items.classes[:_MOST_NAMED]) + (", ..." if len(items.classes) > _MOST_NAMED else "")
    labels = f"{len(items.classes)} classes ({named})" if items.classes else "a value for each item"
    parts = f"{len(found.labels):,} to learn from, {len(found.held_labels):,} held out"
    return f"{items.origin or data.text}: {quantity_text.count(len(items), 'item')} with {labels}; {parts}"
