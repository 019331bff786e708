"""Operators that treat every element alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from fairlap.models.onnx_import.libraries.functions import FUNCTIONS
from fairlap.models.onnx_import.operators.registry import Attributes, operator


def _of_library(name: str, library: Any, attributes: Attributes) -> Callable[..., Any]:
    found: Callable[..., Any] = library.functions[name]
    return found


def _enter_functions() -> None:
    """Each elementary function is an operator."""
    for name, function in FUNCTIONS.items():
        if not function.internal:
            operator(name, layout="elementwise", bind=partial(_of_library, name))(
                lambda library, *values, _name=name: library.apply(_name, *values)
            )


_enter_functions()


@operator("Div", layout="elementwise")
def divide(library: Any, left: Any, right: Any) -> Any:
    return left / right if library.is_floating(left) else library.apply("IntegerDivision", left, right)


@operator("Pow", scalars={"exponent": 1}, layout="elementwise")
def power(library: Any, base: Any, power: Any = None, *, exponent: float | None = None) -> Any:
    """In the type of the base, whatever the type of the exponent."""
    if exponent is not None:
        return library.power_of_number(base, exponent)
    if library.is_floating(power) and not library.is_floating(base):
        return library.cast(library.apply("Power", library.cast_like(base, power), power), library.dtype_of(base))
    return library.apply("Power", base, library.cast_like(power, base))


@operator("Mod", layout="elementwise")
def modulo(library: Any, left: Any, right: Any, *, fmod: int = 0) -> Any:
    return library.apply("TruncatedModulo" if fmod else "FlooredModulo", left, right)


@operator("BitShift", layout="elementwise")
def bit_shift(library: Any, left: Any, right: Any, *, direction: str) -> Any:
    return library.apply("ShiftLeft" if direction == "LEFT" else "ShiftRight", left, right)


@operator("Max", layout="elementwise")
def maximum(library: Any, *values: Any) -> Any:
    return reduce(lambda left, right: library.apply("Maximum", left, right), values)


@operator("Min", layout="elementwise")
def minimum(library: Any, *values: Any) -> Any:
    return reduce(lambda left, right: library.apply("Minimum", left, right), values)


@operator("Sum", layout="elementwise")
def total(library: Any, *values: Any) -> Any:
    return reduce(lambda left, right: left + right, values)


@operator("Mean", layout="elementwise")
def mean(library: Any, *values: Any) -> Any:
    return total(library, *values) / len(values)


@operator("Clip", scalars={"min": 1, "max": 2}, layout="elementwise")
def clip(
    library: Any,
    value: Any,
    low: Any = None,
    high: Any = None,
    *,
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
) -> Any:
    if low is None and high is None:
        return library.clip_to_numbers(value, min, max)
    low = low if low is not None or min is None else library.full_like(value, min)
    high = high if high is not None or max is None else library.full_like(value, max)
    value = value if low is None else library.apply("Maximum", value, low)
    return value if high is None else library.apply("Minimum", value, high)


@operator("IsInf", layout="elementwise")
def is_infinite(library: Any, value: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    infinite = library.apply("IsInfinite", value)
    if not detect_negative:
        infinite = library.apply("And", infinite, value > 0)
    return infinite if detect_positive else library.apply("And", infinite, value < 0)


@operator("Where", layout="elementwise")
def where(library: Any, condition: Any, value: Any, other: Any) -> Any:
    return library.where(condition, value, other)


# What it ignores matters only for floating-point numbers of eight bits, which are refused.
@operator("Cast", layout="elementwise", reads=("round_mode", "saturate"))
def cast(library: Any, value: Any, *, to: str) -> Any:
    return library.cast(value, to)


@operator("Identity", layout="elementwise")
def identity(library: Any, value: Any) -> Any:
    return value


def _refuse_dropout(attributes: Attributes) -> str | None:
    drawn = attributes.get("training_mode") and attributes.get("ratio", 0.5)
    return "training draws random numbers" if drawn else None


@operator(
    "Dropout", operands={"ratio": 1, "training_mode": 2}, layout="elementwise", reads=("seed",), refuse=_refuse_dropout
)
def dropout(
    library: Any,
    value: Any,
    *,
    ratio: float = 0.5,
    training_mode: bool = False,
    count: int,
) -> Any:
    return (value, library.apply("Equal", value, value)) if count > 1 else value
