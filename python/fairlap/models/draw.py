"""Draw weights, inputs and labels from one seed. Every array has its own generator, so none depends on another."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import NotAvailable
from fairlap.models.arrays import Labels
from fairlap.models.made_arrays import made
from fairlap.models.spec import LABELS, Constant, Fill, Integers, Made, Normal, Spec
from fairlap.request.work import Precision


def rounded_to_bfloat16(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Round float32 to bfloat16: to nearest, ties to even, as every framework does."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


def rounded_to(precision: Precision, array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Round a weight as a framework does that holds it in this precision."""
    if precision == "bf16":
        return rounded_to_bfloat16(array)
    if precision == "fp16":
        with np.errstate(over="ignore"):
            return array.astype(np.float16).astype(np.float32)
    return array


def draw_weights(spec: Spec, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    return {
        weight.name: _filled(weight.fill, weight.shape, _generator(seed, "weight", weight.name)).astype(np.float32)
        for weight in spec.weights
    }


def draw_inputs(spec: Spec, batch: int, seed: int) -> dict[str, npt.NDArray[Any]]:
    try:
        return {
            tensor.name: _filled(tensor.fill, tensor.sized(batch), _generator(seed, "input", tensor.name)).astype(
                tensor.dtype
            )
            for tensor in spec.inputs
        }
    except MemoryError:
        raise NotAvailable(
            f"there is not enough memory for the inputs of {spec.name} at batch {batch}; choose a smaller batch"
        ) from None


def draw_labels(spec: Spec, batch: int, seed: int) -> Labels | None:
    """One class for each row of the first output, or one value for each element; None when the loss needs none.

    Labels that frames spell are half as long as they may be, or longer, and end in zeros.
    What a user's own loss compares with is not known, so nothing is drawn for it.
    """
    if spec.loss in ("mean_square", "own"):
        return None
    shape, rng = spec.outputs[0].sized(batch), _generator(seed, "labels", LABELS)
    if spec.loss == "square_error":
        return rng.standard_normal(shape, dtype=np.float32)
    if spec.loss == "ctc":
        longest = shape[1] // 2
        lengths = rng.integers(longest // 2, longest + 1, (batch, 1))
        spelt = rng.integers(1, shape[-1], (batch, longest))
        return np.where(np.arange(longest) < lengths, spelt, 0).astype(np.int32)
    return rng.integers(0, shape[-1], shape[:-1]).astype(np.int32)


def _generator(seed: int, kind: str, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed} {kind} {name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def _filled(fill: Fill, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
    if isinstance(fill, Normal):
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(fill.std) + np.float32(fill.mean)
    if isinstance(fill, Integers):
        return _skewed(fill, shape, rng) if fill.skew else rng.integers(fill.low, fill.high, shape)
    if isinstance(fill, Made):
        return made(fill, shape, rng)
    if isinstance(fill, Constant):
        return np.full(shape, fill.value)
    return rng.uniform(fill.low, fill.high, shape)


def _skewed(fill: Integers, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    shares = np.cumsum(np.arange(1, fill.high - fill.low + 1, dtype=np.float64) ** -fill.skew)
    places: npt.NDArray[np.int64] = np.searchsorted(shares, rng.uniform(0, shares[-1], shape), side="right")
    return fill.low + places
