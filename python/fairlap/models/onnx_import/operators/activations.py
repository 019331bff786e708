"""Activations that are not elementary functions of a library."""

from __future__ import annotations

from typing import Any

from fairlap.models.onnx_import.operators.registry import operator


@operator("Elu", layout="elementwise")
def elu(library: Any, value: Any, *, alpha: float = 1.0) -> Any:
    return library.where(value > 0, value, library.apply("Expm1", library.clip_to_numbers(value, None, 0)) * alpha)


@operator("Celu", layout="elementwise")
def celu(library: Any, value: Any, *, alpha: float = 1.0) -> Any:
    below = library.apply("Expm1", library.clip_to_numbers(value, None, 0) / alpha) * alpha
    return library.where(value > 0, value, below)


@operator("Selu", layout="elementwise")
def selu(
    library: Any,
    value: Any,
    *,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Any:
    return elu(library, value, alpha=alpha) * gamma


@operator("LeakyRelu", layout="elementwise")
def leaky_relu(library: Any, value: Any, *, alpha: float = 0.01) -> Any:
    return library.where(value >= 0, value, value * alpha)


@operator("PRelu", layout="elementwise")
def p_relu(library: Any, value: Any, slope: Any) -> Any:
    return library.where(value >= 0, value, value * slope)


@operator("ThresholdedRelu", layout="elementwise")
def thresholded_relu(library: Any, value: Any, *, alpha: float = 1.0) -> Any:
    return library.where(value > alpha, value, library.full_like(value, 0))


@operator("HardSigmoid", layout="elementwise")
def hard_sigmoid(library: Any, value: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return library.clip_to_numbers(value * alpha + beta, 0, 1)


@operator("HardSwish", layout="elementwise")
def hard_swish(library: Any, value: Any) -> Any:
    return value * hard_sigmoid(library, value, alpha=1 / 6, beta=0.5)


@operator("Mish", layout="elementwise")
def mish(library: Any, value: Any) -> Any:
    return value * library.apply("Tanh", library.apply("Softplus", value))


@operator("Swish", layout="elementwise")
def swish(library: Any, value: Any, *, alpha: float = 1.0) -> Any:
    return library.silu(value) if alpha == 1 else value * library.apply("Sigmoid", value * alpha)


@operator("Shrink", layout="elementwise")
def shrink(library: Any, value: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    wide = value if library.is_floating(value) else library.cast(value, "float32")
    zero = library.full_like(wide, 0)
    shrunk = library.where(wide < -lambd, wide + bias, library.where(wide > lambd, wide - bias, zero))
    return library.cast(shrunk, library.dtype_of(value))


@operator("Gelu", layout="elementwise")
def gelu(library: Any, value: Any, *, approximate: str = "none") -> Any:
    return library.gelu(value, approximate == "tanh")
