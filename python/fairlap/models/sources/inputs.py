"""The inputs of a race: the user's own, or drawn ones; and others of the same shapes for the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.models.array_files.npy_map import release
from fairlap.models.arrays import Arrays
from fairlap.models.draw import draw_inputs
from fairlap.models.published_data.text_tokens import Tokens
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.sets import CODE, Sets
from fairlap.models.spec import Integers, Spec, Tensor
from fairlap.request.fields.source import Source
from fairlap.suggestions import with_hint

CALIBRATION = "calibration-"  # with a number, sets of inputs that a quantization may look at
_CALIBRATION_SETS, _CALIBRATION_ITEMS = 8, 64  # at least, where they are drawn
_MOST_CALIBRATION_SETS = 32  # of a user
CALIBRATION_FROM = 3000  # added to the seed


def shapes_of(sets: Sets, names: Sequence[str], source: Source | None = None) -> dict[str, tuple[int, ...]]:
    """Of the first set, by the model's names. Of data for a metric, which runs in batches, those of a batch."""
    shapes = {name: array.shape for name, array in _named(sets[0], names).items()} if sets else {}
    if source is None or source.batch is None or not source.metrics:
        return shapes
    return {name: (source.batch, *shape[1:]) if shape else shape for name, shape in shapes.items()}


class Batches(Sequence[dict[str, np.ndarray]]):
    """Items in batches of one size, each made when it is asked for; the last one is filled up with the first items."""

    def __init__(self, arrays: Mapping[str, np.ndarray], items: int, size: int) -> None:
        self._arrays, self._items, self._size = arrays, items, size

    def __len__(self) -> int:
        return -(-self._items // self._size)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        places = np.arange(number * self._size, (number + 1) * self._size) % self._items
        found = {name: array[places] for name, array in self._arrays.items()}
        for array in self._arrays.values():
            release(array)
        return found


def batches_of(tensors: Sequence[Tensor], given: Sets, batch_axes: Mapping[str, int]) -> tuple[Sets, int]:
    """Split a metric's data into batches of the model's size, and count its items."""
    if len(given) != 1:
        raise SourceError(f"a metric takes one set of inputs (got {len(given)})", code=CODE)
    own = _named(given[0], [tensor.name for tensor in tensors])
    sizes = {tensor.sized(1)[0] if tensor.shape else 0 for tensor in tensors}
    counts = {len(array) if array.ndim else 0 for array in own.values()}
    if batch_axes or len(sizes) != 1 or len(counts) != 1 or 0 in sizes | counts:
        raise SourceError("for a metric the first size of every input must be the number of its items", code=CODE)
    (size,), (items,) = sizes, counts
    return Batches(own, items, size), items


def input_sets(
    tensors: Sequence[Tensor], given: Sets, example: Arrays | None, seeds: Mapping[str, int]
) -> dict[str, dict[str, np.ndarray]]:
    """Make one set for each of the seeds' names.

    The first is the user's, where there is one; others are the user's next ones, then its values in another order. Of
    several, one at least is left for calibration.
    """
    named, _ = _parted(tensors, given, example, len(seeds))
    spec = Spec("", "", tuple(tensors), (), (), 0, None, "")
    sets: dict[str, dict[str, np.ndarray]] = {}
    for number, (which, seed) in enumerate(seeds.items()):
        if number < len(named):
            sets[which] = named[number]
        elif named:
            sets[which] = {name: _reordered(array, seed) for name, array in named[0].items()}
        else:
            sets[which] = _drawn(spec, seed)
    return sets


def calibration_count(batch: int) -> int:
    """How many sets are drawn for calibration: with few items, larger activations than they have are cut off."""
    return max(_CALIBRATION_SETS, -(-_CALIBRATION_ITEMS // batch))


def calibration_sets(
    tensors: Sequence[Tensor], given: Sets, example: Arrays | None, seeds: Mapping[str, int], batch: int
) -> dict[str, dict[str, np.ndarray]]:
    """Choose what a quantization may look at: the user's sets that ``input_sets`` left, else drawn ones."""
    _, named = _parted(tensors, given, example, len(seeds))
    spec, first = Spec("", "", tuple(tensors), (), (), 0, None, ""), next(iter(seeds.values()))
    found = named or [_drawn(spec, first + CALIBRATION_FROM + number) for number in range(calibration_count(batch))]
    return {f"{CALIBRATION}{number}": own for number, own in enumerate(found)}


def _parted(tensors: Sequence[Tensor], given: Sets, example: Arrays | None, checks: int) -> tuple[Sets, Sets]:
    """Split the user's sets into those for the checks, and others for calibration, unless there is only one."""
    found = [*given[: checks + _MOST_CALIBRATION_SETS], *([dict(example)] if example and not given else [])]
    named = [of_tensors(own, tensors) for own in found]
    first = min(checks, len(named) - 1)
    return (named, named) if len(named) < 2 else (named[:first], named[first:])


def _drawn(spec: Spec, seed: int) -> dict[str, np.ndarray]:
    return {name: _with_a_first(array) for name, array in draw_inputs(spec, 1, seed).items()}


def of_tensors(own: Mapping[str, np.ndarray], tensors: Sequence[Tensor]) -> dict[str, np.ndarray]:
    """As the model takes them."""
    by_name = _named(own, [tensor.name for tensor in tensors])
    if missing := [tensor.name for tensor in tensors if tensor.name not in by_name]:
        raise SourceError(f"the inputs given lack {', '.join(missing)}", code=CODE)
    if tensors and not any(by_name[tensor.name].size for tensor in tensors):
        shapes = ", ".join(f"{tensor.name} is {list(by_name[tensor.name].shape)}" for tensor in tensors)
        raise SourceError(f"the inputs given have no elements: {shapes}", code=CODE)
    return {tensor.name: _fitting(tensor, by_name[tensor.name]) for tensor in tensors}


def _named(own: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    """By the model's names; arrays without names (empty, or numbers) count in the model's order."""
    if isinstance(own, Tokens):
        return {name: array for name, array in own.items() if name in names}
    if all(not name or name.isdecimal() for name in own):
        return dict(zip(names, own.values(), strict=False))
    unknown = [name for name in own if name not in names]
    if unknown:
        wrong = f"the model has no input {unknown[0]!r}; it has {', '.join(names)}"
        raise SourceError(with_hint(wrong, unknown[0], names), code=CODE)
    return dict(own)


def cast_notices(tensors: Sequence[Tensor], given: Sets) -> list[Notice]:
    """Of floats that lose digits when the model takes them."""
    own = _named(given[0], [tensor.name for tensor in tensors]) if given else {}
    return [
        Notice(
            "W_INPUTS_CAST",
            f"{tensor.name} is {own[tensor.name].dtype} in the inputs given; it was rounded to {tensor.dtype}",
        )
        for tensor in tensors
        if tensor.name in own
        and own[tensor.name].dtype.kind == tensor.dtype[0] == "f"
        and own[tensor.name].dtype.itemsize > np.dtype(tensor.dtype).itemsize
    ]


def _fitting(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    if array.shape != tensor.shape:
        raise SourceError(
            f"{tensor.name} is {list(tensor.shape)} in the model, and {list(array.shape)} in the inputs given",
            code=CODE,
        )
    wanted = np.dtype(tensor.dtype)
    if array.dtype != wanted:
        if array.dtype.kind not in "biuf" or (wanted.kind != "f" and array.dtype.kind == "f"):
            raise SourceError(f"{tensor.name} takes {wanted}, and the inputs given have {array.dtype}", code=CODE)
        converted = array.astype(wanted)
        if wanted.kind != "f" and not np.array_equal(converted, array):
            raise SourceError(f"values of {tensor.name} do not fit into {wanted}", code=CODE)
        array = converted
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise SourceError(f"{tensor.name} has values that are not finite", code=CODE)
    if isinstance(tensor.fill, Integers) and tensor.fill.required and tensor.dtype != "bool" and array.size:
        low, high = int(array.min()), int(array.max())
        if low < tensor.fill.low or high >= tensor.fill.high:
            raise SourceError(
                f"{tensor.name} must be within {tensor.fill.low}..{tensor.fill.high - 1} (got {low}..{high}); outside "
                "of it frameworks silently differ",
                code=CODE,
            )
    return np.asarray(array, order="C")


def _reordered(array: np.ndarray, seed: int) -> np.ndarray:
    """Put the same values in other places: in range, and of the same size, whatever they mean.

    Where that changes nothing, floats are moved.
    """
    rng = np.random.default_rng(seed)
    flat = array.reshape(-1)
    other = flat[rng.permutation(flat.size)]
    if np.array_equal(other, flat):
        other = np.roll(flat, 1)
    if np.array_equal(other, flat) and flat.dtype.kind == "f":
        other = flat + (rng.uniform(0.5, 1.5, flat.size)).astype(flat.dtype)
    return other.reshape(array.shape)


def _with_a_first(array: np.ndarray) -> np.ndarray:
    """Set the first place of each row of a mask: one that hides a whole row makes NaN of its softmax."""
    if array.dtype.kind in "bi" and array.ndim and array.size and array.max() <= 1 and array.min() >= 0:
        array[..., 0] = 1
    return array
