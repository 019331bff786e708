"""Resizing by interpolation. Which pixels give each new one, and by which shares, is known when building."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.graph import Array, Tensor
from fairlap.models.onnx_import.operators.registry import Attributes, operator

_READS = (
    "antialias",
    "axes",
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "extrapolation_value",
    "keep_aspect_ratio_policy",
    "mode",
    "nearest_mode",
)
_MOST_PLACES = 2**22  # along one axis
_MOST_SHARES = 2**26  # a matrix for each axis: 8,192 pixels to as many
Places = tuple[tuple[int, tuple[int, ...]], ...]


def _resolve(attributes: Attributes, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> Attributes:
    image = inputs[0]
    assert image is not None
    rank = len(image.shape)
    axes = [axis % rank for axis in attributes.get("axes") or range(rank)]
    scales = _scales(attributes, image.shape, outputs[0].shape, axes)
    roi = attributes.get("roi") or (0.0,) * len(axes) + (1.0,) * len(axes)
    nearest: list[tuple[int, tuple[int, ...]]] = []
    shares: dict[str, Array] = {}
    outside: dict[str, Array] = {}
    for at, axis in enumerate(axes):
        size, wanted = image.shape[axis], outputs[0].shape[axis]
        _require_room(size, wanted, nearest=attributes.get("mode", "nearest") == "nearest")
        crop = (roi[at], roi[at + len(axes)])
        mode = attributes.get("coordinate_transformation_mode", "half_pixel")
        places = _coordinates(mode, size, wanted, scales[at], crop)
        if mode == "tf_crop_and_resize":
            beyond = (places < 0) | (places > size - 1)
            if beyond.any():
                outside[f"outside_{axis}"] = beyond
        elif size == wanted and scales[at] == 1:
            continue
        if attributes.get("mode", "nearest") == "nearest":
            nearest.append((axis, _nearest(places, size, attributes.get("nearest_mode", "round_prefer_floor"))))
        else:
            shares[f"shares_{axis}"] = _shares(places, size, scales[at], attributes).astype(
                image.dtype if image.dtype != "bfloat16" else np.float32
            )
    return {
        "nearest": tuple(nearest),
        "shares": tuple(shares),
        "outside": tuple(outside),
        **shares,
        **outside,
        "extrapolation_value": attributes.get("extrapolation_value", 0.0),
    }


def _require_room(size: int, wanted: int, *, nearest: bool) -> None:
    if wanted > _MOST_PLACES or (not nearest and size * wanted > _MOST_SHARES):
        raise ModelFileInvalid(f"a Resize of {size:,} to {wanted:,} along one axis is too large")


def _scales(attributes: Attributes, before: Sequence[int], after: Sequence[int], axes: Sequence[int]) -> list[float]:
    if attributes.get("scales"):
        return list(attributes["scales"])
    sizes = attributes.get("sizes") or [after[axis] for axis in axes]
    scales = [size / before[axis] for size, axis in zip(sizes, axes, strict=True)]
    policy = attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return scales
    return [min(scales) if policy == "not_larger" else max(scales)] * len(axes)


def _coordinates(mode: str, size: int, wanted: int, scale: float, crop: tuple[float, float]) -> Array:
    """Where on the old axis each new pixel is."""
    places = np.arange(wanted, dtype=np.float64)
    start, end = crop
    if mode == "asymmetric":
        return np.asarray(places / scale)
    if mode == "align_corners":
        reach = scale * size - 1  # of the length before it is rounded, as in onnx's reference
        return np.asarray(places * (size - 1) / reach if reach > 0 else places * 0)
    if mode == "tf_crop_and_resize":
        if wanted == 1:
            return np.asarray(places + (start + end) * (size - 1) / 2)
        return np.asarray(start * (size - 1) + places * (end - start) * (size - 1) / (wanted - 1))
    half = (places + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return np.asarray(size / 2 * (1 - wanted / (scale * size)) + half)
    if mode == "pytorch_half_pixel" and wanted == 1:
        return places * 0
    if mode not in ("half_pixel", "pytorch_half_pixel"):
        raise NotImplementedError(f"Resize with coordinate_transformation_mode {mode!r}")
    return np.asarray(half)


def _nearest(places: Array, size: int, mode: str) -> tuple[int, ...]:
    rounded = {
        "round_prefer_floor": lambda: np.ceil(places - 0.5),
        "round_prefer_ceil": lambda: np.floor(places + 0.5),
        "floor": lambda: np.floor(places),
        "ceil": lambda: np.ceil(places),
    }[mode]()
    return tuple(int(place) for place in np.clip(rounded, 0, size - 1))


def _shares(places: Array, size: int, scale: float, attributes: Attributes) -> Array:
    """Make a matrix of the share of each old pixel in each new one (rows)."""
    cubic = attributes["mode"] == "cubic"
    stretch = min(scale, 1.0) if attributes.get("antialias", 0) else 1.0
    reach = (2 if cubic else 1) / stretch
    matrix = np.zeros((len(places), size))
    for row, place in enumerate(places):
        near = np.arange(math.floor(place - reach) + 1, math.ceil(place + reach))
        near = near if len(near) else np.array([math.floor(place)])
        distance = np.abs(near - place) * stretch
        share = _cubic(distance, attributes.get("cubic_coeff_a", -0.75)) if cubic else np.clip(1 - distance, 0, 1)
        if attributes.get("exclude_outside", 0):
            share = np.where((near >= 0) & (near < size), share, 0)
        np.add.at(matrix[row], np.clip(near, 0, size - 1), share / share.sum())
    return matrix


def _cubic(distance: Array, a: float) -> Array:
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


@operator(
    "Resize",
    operands={"roi": 1, "scales": 2, "sizes": 3},
    layout="spatial",
    resolve=_resolve,
    reads=_READS,
    folds=False,
)
def resize(
    library: Any,
    image: Any,
    *,
    nearest: Places,
    shares: Sequence[str],
    outside: Sequence[str],
    extrapolation_value: float,
    **arrays: Any,
) -> Any:
    rank = len(image.shape)
    for axis, places in nearest:
        image = library.take(image, places, _axis(library, axis, rank))
    dtype = library.dtype_of(image)
    wide = image if not shares or library.is_floating(image) else library.cast(image, "float32")
    for name in shares:
        wide = _mixed(library, wide, arrays[name], _axis(library, int(name.split("_")[1]), rank))
    image = library.cast(wide, dtype) if shares and not library.is_floating(image) else wide
    for name in outside:
        axis = _axis(library, int(name.split("_")[1]), rank)
        line = library.reshape(arrays[name], tuple(-1 if at == axis else 1 for at in range(rank)))
        image = library.where(line, library.full_like(image, extrapolation_value), image)
    return image


def _axis(library: Any, axis: int, rank: int) -> int:
    """Where the library has an axis of the file."""
    if not library.channels_last or rank < 3 or axis == 0:
        return axis
    return rank - 1 if axis == 1 else axis - 1


def _mixed(library: Any, image: Any, shares: Any, axis: int) -> Any:
    """Multiply a matrix with one axis of an image."""
    letters = "abcdefgh"[: len(image.shape)]
    equation = f"{letters},z{letters[axis]}->{letters.replace(letters[axis], 'z')}"
    return library.einsum(equation, image, library.cast_like(shares, image))
