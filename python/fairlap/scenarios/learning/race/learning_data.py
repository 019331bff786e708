"""The labelled data of works that are trained to a score: chosen for the plan, and read again when it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from fairlap.models.array_files.npy_map import pieces_of
from fairlap.models.array_files.stored_rows import changed_rows
from fairlap.models.registry import Model, find, follows_data
from fairlap.models.spec import Integers, Spec
from fairlap.request.fields.data.training_data import TrainingData
from fairlap.request.fields.loss import CODE as E_LOSS
from fairlap.request.work import Work

E_TO_SCORE = "E_TO_SCORE"
_MOST_NAMED = 5
_ONE_VALUE = ((), (1,))  # shapes of an answer that is one
_OF_CLASSES, _OF_VALUES = ("cross_entropy", "ctc", "own"), ("square_error", "own")  # losses


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
    spec = model.spec if sizes is None else find(model.spec.name, sizes).spec
    data = msgspec.structs.replace(named, fraction=fraction, hash=items.hash, sizes=sizes)
    items = _as_taken(items, _inputs(spec), _of_one_item(spec))
    _require_fit(items, spec, named.text)
    if named.path:
        notify(_described(items, parted(items, _names(spec), fraction), named))
    return data, spec


def labelled(work: Work, spec: Spec) -> LabelledSet:
    """Read once in a process. Raises InvalidRequest for data that are not those of the plan."""
    assert work.train_on is not None
    return _labelled(work.train_on, _inputs(spec), _of_one_item(spec))


@cache
def _labelled(data: TrainingData, inputs: Inputs, answer: tuple[int, ...]) -> LabelledSet:
    items = _as_taken(_unchanged(data), inputs, answer)
    return parted(items, tuple(name for name, _ in inputs), data.fraction)


def _unchanged(data: TrainingData) -> Items:
    items = items_in(data)
    if items.hash != data.hash:
        raise InvalidRequest(
            f"{data.text} is not the data of the plan (hash {data.hash[:12]}, now {items.hash[:12]}); restore the "
            "data, or start a new run",
            code=CHANGED,
        )
    return items


def require_same_data(work: Work) -> None:
    """Raise InvalidRequest for data that are not those of the plan."""
    if work.train_on is None:
        return
    if work.source is None:
        labelled(work, find(work.model, work.sizes).spec)  # kept for the race
    else:
        _unchanged(work.train_on)


Inputs = tuple[tuple[str, str], ...]
"""Of a model: names and types."""


def _inputs(spec: Spec) -> Inputs:
    return tuple((tensor.name, tensor.dtype) for tensor in spec.inputs)


def _names(spec: Spec) -> tuple[str, ...]:
    return tuple(tensor.name for tensor in spec.inputs)


def _of_one_item(spec: Spec) -> tuple[int, ...]:
    """Return the shape of the answer to one item."""
    return spec.outputs[0].sized(1)[1:]


def _as_taken(items: Items, inputs: Inputs, answer: tuple[int, ...]) -> Items:
    """Give the items the names and types that a model takes, and values the shape of its answers.

    Whole numbers of a file are read as features; a model may look them up instead, as it does tokens.
    """
    named, types = items.named_for([name for name, _ in inputs]), dict(inputs)
    typed = {name: _in_whole_numbers(array, types.get(name, "")) for name, array in named.items()}
    is_one_value = not items.classes and answer in _ONE_VALUE
    return replace(items, inputs=typed, labels=items.labels.reshape(-1, *answer) if is_one_value else items.labels)


def _in_whole_numbers(array: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    if not dtype.startswith(("int", "uint")):
        return array
    if array.dtype.kind == "f" and not all(np.array_equal(piece, np.rint(piece)) for piece in pieces_of(array)):
        return array
    return changed_rows(array, lambda rows: rows.astype(dtype))


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
        fill = tensor.fill
        if not (isinstance(fill, Integers) and fill.required):
            continue
        ends = [(piece.min(), piece.max()) for piece in pieces_of(array)]
        low, high = min(each for each, _ in ends), max(each for _, each in ends)
        if not fill.low <= low <= high < fill.high:
            raise InvalidRequest(
                f"{tensor.name} of {data} is from {low} to {high}; {spec.name} takes {fill.low} to {fill.high - 1}",
                code=CODE,
            )
    _require_labels(items, spec, data)


def _require_labels(items: Items, spec: Spec, data: str) -> None:
    answer, classes = _of_one_item(spec), len(items.classes)
    if classes and (spec.loss not in _OF_CLASSES or classes > (answer or (0,))[-1]):
        answers = f"{(answer or (0,))[-1]} classes" if spec.loss in _OF_CLASSES else "values"
        raise InvalidRequest(
            f"labels of {data} are out of range: {classes} classes; {spec.name} has {answers}", code=CODE
        )
    spelt = spec.label_tensor() if spec.loss == "ctc" else None
    wanted = answer[:-1] if spelt is None else spelt.sized(1)[1:]
    if classes and items.labels.shape[1:] != wanted:
        raise InvalidRequest(
            f"{data} has labels of the shape {list(items.labels.shape[1:])} for an item; the scores of {spec.name} are "
            f"{list(answer)}, so it takes labels of {list(wanted)}",
            code=CODE,
        )
    if not classes and (spec.loss not in _OF_VALUES or answer not in _ONE_VALUE):
        raise InvalidRequest(f"{data} has a value for each item; {spec.name} does not learn values", code=CODE)


def require_batches(work: Work, spec: Spec) -> None:
    """Refuse a model of one's own that takes no batch of items with labels."""
    source = work.source
    if source is None:
        return
    if {tensor.shape[:1] for tensor in (*spec.inputs, spec.outputs[0])} != {(work.batch,)}:
        raise InvalidRequest(
            f"{spec.name} cannot be trained to a score: its inputs and its first output do not begin with one batch",
            code=E_TO_SCORE,
        )
    if spec.loss == "own" and not source.labels:
        raise InvalidRequest(
            f"--to-score hands labels to --loss {source.loss}, which was checked without any: add --labels, those of "
            "one batch, or use cross_entropy or mse",
            code=E_LOSS,
        )


def _shape(array: npt.NDArray[Any]) -> str:
    return f"{array.dtype} of the shape {list(array.shape[1:])}"


def _described(items: Items, found: LabelledSet, data: TrainingData) -> str:
    """Summarize what was understood of a user's data."""
    named = ", ".join(items.classes[:_MOST_NAMED]) + (", ..." if len(items.classes) > _MOST_NAMED else "")
    labels = f"{len(items.classes)} classes ({named})" if items.classes else "a value for each item"
    parts = f"{len(found.labels):,} to learn from, {len(found.held_labels):,} held out"
    return f"{items.origin or data.text}: {quantity_text.count(len(items), 'item')} with {labels}; {parts}"
