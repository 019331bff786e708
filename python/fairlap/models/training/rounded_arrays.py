"""Arrays whose operations round to bfloat16, so that a reference shows how far such rounding carries it.

A reference is plain NumPy, and so are the rules by which it is differentiated. NumPy hands every operation on these
arrays to this module, which computes it in float32 and rounds the result.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fairlap.models.checks.differentiation import Traced
from fairlap.models.draw import rounded_to_bfloat16

Array = npt.NDArray[Any]

_PRODUCTS = (np.matmul, np.einsum)


class Rounded(np.ndarray):
    """float32 numbers that bfloat16 has.

    The result of every operation is rounded to it, but for sums that are gathered in place, as those of a convolution
    are; they are rounded by the operation that takes them.
    """

    everything: ClassVar[bool] = True

    @classmethod
    def of(cls, array: Array) -> Self:
        return cls._made(array, rounds=cls.everything)

    @classmethod
    def _made(cls, result: Any, *, rounds: bool) -> Self:
        array = np.asarray(result, dtype=np.float32)
        return (_rounded(array) if rounds else array).view(cls)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: Any, *inputs: Any, out: tuple[Any, ...] = (), **named: Any
    ) -> Any:
        if any(isinstance(each, Traced) for each in inputs):
            return NotImplemented
        is_product = ufunc in _PRODUCTS
        values = [_rounded_factor(each) if is_product else bare(each) for each in inputs]
        into = {"out": tuple(map(bare, out))} if out else {}
        result = getattr(ufunc, method)(*values, **into, **named)
        if out or result is None:
            return out[0] if out else None
        return self._after(result, is_product=is_product)

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        if Traced in types:
            return NotImplemented
        is_product = function in _PRODUCTS
        convert = _rounded_factor if is_product else bare
        result = function(*(_each(convert, one) for one in arguments), **named)
        if function is sliding_window_view:  # of numbers that are rounded; its elements share memory
            return self._made(result, rounds=False)
        return self._after(result, is_product=is_product)

    def _after(self, result: Any, *, is_product: bool) -> Any:
        if not isinstance(result, np.ndarray | np.generic) or result.dtype.kind != "f":
            return result
        return self._made(result, rounds=is_product or self.everything)


class WithRoundedProducts(Rounded):
    """float32. Only the factors and the results of matrix products and convolutions are rounded to bfloat16."""

    everything = False


def bare(each: Any) -> Any:
    """View the same memory as an array whose operations do not round."""
    return each.view(np.ndarray) if isinstance(each, Rounded) else each


def _each(convert: Any, argument: Any) -> Any:
    if isinstance(argument, list | tuple):
        return type(argument)(convert(each) for each in argument)
    return convert(argument)


def _rounded_factor(each: Any) -> Any:
    is_number = isinstance(each, np.ndarray) and each.dtype.kind == "f"
    return _rounded(bare(each).astype(np.float32)) if is_number else each


def _rounded(array: Array) -> npt.NDArray[np.float32]:
    return rounded_to_bfloat16(array).reshape(array.shape)
