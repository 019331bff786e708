"""Compare an output with the float64 reference, and describe how it is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.spec import Tolerance


@dataclass(frozen=True)
class OutputError:
    """The distance of an array from the reference. ``why`` is empty if it is right."""

    name: str
    cosine: float
    worst_absolute: float
    relative_error: float  # norm of the difference over the norm of the reference
    why: str = ""

    @property
    def right(self) -> bool:
        return not self.why


def output_errors(
    name: str, got: npt.NDArray[Any], reference: npt.NDArray[np.float64], tolerance: Tolerance
) -> OutputError:
    """Right means a sufficient cosine, every element within the absolute or the relative tolerance, and the norm."""
    why = _incomparable(got, reference)
    if why:
        infinite = float("inf")
        return OutputError(name, float("nan"), infinite, infinite, why)
    values, expected = got.astype(np.float64).reshape(-1), reference.reshape(-1)
    difference = np.abs(values - expected)
    norm = float(np.linalg.norm(expected))
    cosine = _cosine(values, expected)
    near = (difference <= tolerance.absolute) | (difference <= tolerance.relative * np.abs(expected))
    relative_error = float(np.linalg.norm(difference)) / norm if norm > 0 else float(np.linalg.norm(difference))
    if cosine < tolerance.cosine:
        why = f"its cosine with the reference is {cosine:.4f}, below {tolerance.cosine}"
    elif not near.all():
        why = f"{int((~near).sum()):,} of {near.size:,} elements are off by too much"
    elif tolerance.norm is not None and relative_error > tolerance.norm:
        why = f"all elements together are off by {100 * relative_error:.2g} %, over {100 * tolerance.norm:.2g} %"
    return OutputError(name, cosine, float(difference.max(initial=0.0)), relative_error, why)


LARGEST_QUANTIZATION_ERROR = 1 / 2
ANY = Tolerance(cosine=-1.0, absolute=float("inf"), relative=0.0)


def quantized_errors(
    name: str, got: npt.NDArray[Any], reference: npt.NDArray[np.float64], usual: npt.NDArray[np.float64]
) -> OutputError:
    """Compare the answers of a quantized model, which no tolerance proves equal.

    ``usual`` is the average of the reference's answers to several inputs. Right means that the answer is off by at most
    half the distance from there to the reference, so that what the inputs change is in it: of a model that ignores
    them, or has a layer less, it is not.
    """
    found = output_errors(name, got, reference, ANY)
    if not found.right:
        return found
    off = float(np.linalg.norm((got.astype(np.float64) - reference).reshape(-1)))
    depends = float(np.linalg.norm((reference - usual).reshape(-1)))
    if off <= LARGEST_QUANTIZATION_ERROR * depends:
        return found
    share = off / depends if depends else float("inf")
    return replace(
        found,
        why=f"it is off by {share:.2f} times what the inputs change in it; quantized, it may be off by "
        f"{LARGEST_QUANTIZATION_ERROR:.2f} times",
    )


def _incomparable(got: npt.NDArray[Any], reference: npt.NDArray[np.float64]) -> str:
    """Why no distance can be computed; empty if it can."""
    if got.shape != reference.shape:
        return f"its shape is {list(got.shape)}, not {list(reference.shape)}"
    if not np.isfinite(reference).all():
        return "the reference itself is not finite, so nothing can be right"
    finite = np.isfinite(got)
    if not finite.all():
        kind = "NaN" if np.isnan(got).any() else "infinite"
        return f"{int((~finite).sum()):,} of {got.size:,} elements are not finite ({kind})"
    return ""


def _cosine(values: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> float:
    """Compute the cosine; with a reference of zeros it is undefined, and the elements decide."""
    if not expected.any() or not values.any():
        return float(not expected.any())
    # Scaled first, so that no square vanishes or overflows.
    first, second = values / np.abs(values).max(), expected / np.abs(expected).max()
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
