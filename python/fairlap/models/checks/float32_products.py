"""What float32 may lose in sums of products.

Roundings of different products are random. Those of equal ones are alike and add up, as in a mean over a plain photo
that is written as a product with ones. So where factors are plain, products are added up in float32 as the terms of
sums are, and what that loses counts as a share of the norms of both factors. Drawn weights are not plain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fairlap.models.checks.float32_sums import Array, lost_at_random, lost_in_orders

_PLAIN = 0.25  # of the numbers at least; a photo of three plain colours has a third of each
_GLANCE, _BITS = 64, 24
_TRIED = 4  # rows and columns


def lost_in_products(exact: Array, norms: Array, *factors: Array, count: int) -> Array:
    """Find the usual error of sums of ``count`` products of these factors, whose norms there have this product."""
    lost = lost_at_random(exact, norms, count)
    return np.where(norms < 2.0**_BITS, 0.0, lost) if all(map(_are_whole, factors)) else lost


def lost_in_product(left: Array, right: Array, product: Array) -> Array:
    """Find the error of each element of a product of matrices, or of stacks of them."""
    rows, columns = left if left.ndim > 1 else left[None], right if right.ndim > 1 else right[:, None]
    with np.errstate(all="ignore"):
        of_rows = np.sqrt(np.einsum("...ij,...ij->...i", rows, rows))[..., :, None]
        of_columns = np.sqrt(np.einsum("...ij,...ij->...j", columns, columns))[..., None, :]
        norms = of_rows * of_columns
    lost = lost_in_products(product, norms.reshape(product.shape), left, right, count=left.shape[-1])
    plain = plain_shares(rows, columns)
    return lost if plain is None else np.maximum(lost, (plain * norms).reshape(product.shape))


def plain_shares(rows: Array, columns: Array) -> Array | None:
    """Find what each element of a product of matrices loses, as a share of the norms of its row and its column.

    0 where one of them is not plain, and None where that is so everywhere.
    """
    across = np.swapaxes(columns, -1, -2)
    plain_columns = _are_plain(across)
    if not plain_columns.any():
        return None
    plain_rows = _are_plain(rows)
    pairs = ((rows[row], across[column]) for row in _some(plain_rows) for column in _some(plain_columns))
    share = max((_share(row * column, _norm(row) * _norm(column)) for row, column in pairs), default=0.0)
    return share * (plain_rows[..., :, None] & plain_columns[..., None, :]) if share else None


def plain_share(terms: Array) -> float:
    """Find what the sum of these terms loses, as a share of their norm times the root of their count."""
    row = terms.reshape(1, -1)
    return _share(row[0], math.sqrt(row.size) * _norm(row[0])) if _are_plain(row).all() else 0.0


def plain_shares_in_convolution(image: Array, kernel: Array, dilations: Sequence[int], group: int) -> Array | None:
    """Find it for each image and kernel, by what the kernels have below them in the middle of the image."""
    window: list[slice] = []
    own: list[slice] = []
    for size, width, dilation in zip(image.shape[2:], kernel.shape[2:], dilations, strict=True):
        extent = (width - 1) * dilation + 1
        first = max(0, (size - extent) // 2)
        window.append(slice(first, min(size, first + extent), dilation))
        below = len(range(*window[-1].indices(size)))
        own.append(slice((width - below) // 2, (width - below) // 2 + below))
    patches = image[(slice(None), slice(None), *window)].reshape(image.shape[0], group, -1).swapaxes(0, 1)
    kernels = kernel[(slice(None), slice(None), *own)].reshape(group, kernel.shape[0] // group, -1).swapaxes(-1, -2)
    found = plain_shares(patches, kernels)
    if found is None:
        return None
    by_kernel = found.swapaxes(0, 1).reshape(image.shape[0], kernel.shape[0])
    return by_kernel.reshape(*by_kernel.shape, *(1,) * len(window))


def _are_plain(rows: Array) -> Array:
    """Whether so many numbers of each row are equal; a glance at each."""
    if not rows.size:
        return np.zeros(rows.shape[:-1], bool)
    some = rows[..., :: max(1, rows.shape[-1] // _GLANCE)]
    in_order = np.sort(np.where(some == 0, np.inf, some), axis=-1)  # zeros are not rounded
    count = np.count_nonzero(some, axis=-1, keepdims=True)
    middle = np.take_along_axis(in_order, np.minimum(count // 2, some.shape[-1] - 1), axis=-1)
    return np.asarray(((some == middle) & (some != 0)).sum(axis=-1) >= _PLAIN * some.shape[-1])


def _some(are_plain: Array) -> list[tuple[int, ...]]:
    places = np.argwhere(are_plain)
    return [tuple(place) for place in places[:: max(1, len(places) // _TRIED)][:_TRIED]]


def _norm(values: Array) -> float:
    return float(np.linalg.norm(values.astype(np.float64)))


def _share(terms: Array, norm: float) -> float:
    with np.errstate(all="ignore"):
        (lost,) = lost_in_orders(np.ascontiguousarray(terms, np.float32)[None])
    found = float(lost) / norm if norm else 0.0
    return found if math.isfinite(found) else 0.0


def _are_whole(array: Array) -> bool:
    few = array.reshape(-1)[:_GLANCE]
    return bool((few == np.rint(few)).all() and (array == np.rint(array)).all())
