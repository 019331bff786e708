"""Arrays by name, as weights, inputs and answers are handed around, and their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]

Labels = npt.NDArray[np.int32] | npt.NDArray[np.float32]
"""The number of the right class for each row of the output; or, float32, values of the output's shape."""


def widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert floating-point numbers to float64."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def all_widened(arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    return {name: widened(array) for name, array in arrays.items()}


def under(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Select the arrays whose names begin with the prefix, and take it off."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def repeated_items(array: npt.NDArray[Any], shape: Sequence[int | str], batch: int) -> npt.NDArray[Any]:
    """Its items again and again, until there are as many as in the batch. ``shape`` names the batch's axis "batch"."""
    if "batch" not in shape:
        return array
    axis = list(shape).index("batch")
    if array.shape[axis] == batch:
        return array
    return np.ascontiguousarray(np.take(array, np.arange(batch) % array.shape[axis], axis=axis))


def hash_of(
    arrays: Arrays, pieces: Callable[[npt.NDArray[Any]], Iterable[npt.NDArray[Any]]] = lambda whole: [whole]
) -> str:
    """Hash names, types, shapes and numbers; ``pieces`` gives the rows of an array some at a time."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        dtype = array.dtype.newbyteorder("<")
        digest.update(f"{name} {dtype.str} {list(array.shape)}\n".encode())
        for piece in pieces(array):
            digest.update(np.ascontiguousarray(piece, dtype=dtype).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def filled_batches(items: Arrays, batch: int) -> list[dict[str, npt.NDArray[Any]]]:
    """Split all items into batches of one size, so that nothing compiles again.

    The last batch is filled up from the first item on.
    """
    return list(batches_in_turn(items, batch))


def batches_in_turn(items: Arrays, batch: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Make the same, each when it is wanted."""
    count = len(next(iter(items.values())))
    for rows in np.resize(np.arange(count), (-(-count // batch), batch)):
        yield {name: array[rows] for name, array in items.items()}


def joined_items(batches: Sequence[Arrays], count: int) -> dict[str, npt.NDArray[Any]]:
    """Join what belongs to the items of ``filled_batches``, without what belongs to those that filled up the last."""
    return {name: np.concatenate([each[name] for each in batches])[:count] for name in batches[0]}
