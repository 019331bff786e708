"""The input of a model that is corrupted: images, or texts as whole numbers; and between which values it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.models.spec import Tensor
from fairlap.request.fields.data.corruption import CODE, OF_COLOURS, TYPOS, Corruption

_CHANNELS = (1, 3)
_IMAGE_AXES = 4  # with the batch
_BRIGHTEST = (1.0, 255.0)
_OF_A_MASK = 1  # the largest number of an input that marks which tokens count

Batch = Mapping[str, Any]


class CorruptibleInput(msgspec.Struct, frozen=True):
    """``low`` and ``high`` are black and white, or the smallest and the largest number of a text."""

    name: str  # empty where texts were mistyped before tokens were made of them
    channels: Literal["first", "last", ""]  # of images
    low: float
    high: float


MISTYPED = CorruptibleInput("", "", 0, 0)


def corruptible_input(
    tensors: Sequence[Tensor],
    batches: Iterable[Batch],
    ranges: Mapping[str, tuple[float, float]],
    corruptions: Sequence[Corruption],
) -> CorruptibleInput:
    """Find the one input that all of these corruptions are for; refuse data that are no images or no texts."""
    typos = {each.name == TYPOS for each in corruptions}
    if len(typos) > 1:
        raise _refused("typos are for texts, and the other corruptions for images; name one kind")
    ends = _ends(tensors, batches)
    if typos == {True}:
        return _text(tensors, ends)
    return _image(tensors, ends, ranges, corruptions)


def _ends(tensors: Sequence[Tensor], batches: Iterable[Batch]) -> dict[str, tuple[float, float]]:
    """Find the smallest and the largest value of each input."""
    found: dict[str, tuple[float, float]] = {}
    for batch in batches:
        for tensor in tensors:
            array = np.asarray(batch[tensor.name])
            low, high = found.get(tensor.name, (np.inf, -np.inf))
            found[tensor.name] = (min(low, float(array.min())), max(high, float(array.max())))
    return found


def _text(tensors: Sequence[Tensor], ends: Mapping[str, tuple[float, float]]) -> CorruptibleInput:
    texts = [each for each in tensors if each.dtype.startswith("int") and ends[each.name][1] > _OF_A_MASK]
    if len(texts) != 1:
        raise _refused(f"typos are for one input of characters or tokens; {_names(texts)} could be it")
    return CorruptibleInput(texts[0].name, "", *ends[texts[0].name])


def _image(
    tensors: Sequence[Tensor],
    ends: Mapping[str, tuple[float, float]],
    ranges: Mapping[str, tuple[float, float]],
    corruptions: Sequence[Corruption],
) -> CorruptibleInput:
    images = [each for each in tensors if each.dtype.startswith("float") and _channels(each.shape)]
    if len(images) != 1:
        raise _refused(
            f"corruptions are for one input of images, [items, 1 or 3, height, width] or [items, height, width, 1 or "
            f"3]; {_names(images)} could be it"
        )
    [image] = images
    channels = _channels(image.shape)
    if image.shape[1 if channels == "first" else 3] == 1 and any(each.name == OF_COLOURS for each in corruptions):
        raise _refused(f"{OF_COLOURS} is for colour images; {image.name} has one channel")
    return CorruptibleInput(image.name, channels, *_black_and_white(image.name, ends, ranges))


def _channels(shape: Sequence[int | str]) -> Literal["first", "last", ""]:
    if len(shape) != _IMAGE_AXES:
        return ""
    return "first" if shape[1] in _CHANNELS else "last" if shape[3] in _CHANNELS else ""


def _black_and_white(
    name: str, ends: Mapping[str, tuple[float, float]], ranges: Mapping[str, tuple[float, float]]
) -> tuple[float, float]:
    if name in ranges:
        return ranges[name]
    low, high = ends[name]
    white = next((each for each in _BRIGHTEST if low >= 0 and high <= each), None)
    if white is None:
        raise _refused(
            f"{name} is from {low:.4g} to {high:.4g}, so black and white are unknown; give them as --range "
            f"{name}:{low:.4g}..{high:.4g}"
        )
    return 0.0, white


def _names(tensors: Sequence[Tensor]) -> str:
    return ", ".join(each.name for each in tensors) or "none"


def _refused(why: str) -> InvalidRequest:
    return InvalidRequest(f"--corrupt: {why}", code=CODE)
