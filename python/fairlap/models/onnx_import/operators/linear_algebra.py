"""Products of matrices."""

from __future__ import annotations

from typing import Any

from fairlap.models.onnx_import.operators.registry import operator


@operator("MatMul")
def matmul(library: Any, left: Any, right: Any) -> Any:
    return library.matmul(left, right)


@operator("Gemm")
def gemm(
    library: Any,
    left: Any,
    right: Any,
    added: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
) -> Any:
    left = library.transpose(left, (1, 0)) if transA else left
    right = library.transpose(right, (1, 0)) if transB else right
    product = library.matmul(left, right)
    if alpha != 1:
        product = library.scaled(product, alpha)
    if added is None or beta == 0:
        return product
    if len(added.shape) == 2 and added.shape[0] == 1:  # TensorFlow fails to fuse a sum with such a row
        added = library.reshape(added, (added.shape[1],))
    return product + (added if beta == 1 else library.scaled(added, beta))


@operator("Linear")
def linear(library: Any, value: Any, weight: Any, bias: Any = None, *, turned: bool = False) -> Any:
    """Not of ONNX: a product with a weight, which is (out, in) where ``turned``, and its bias."""
    return library.linear(value, weight, bias, turned)


@operator("Einsum")
def einsum(library: Any, *values: Any, equation: str) -> Any:
    return library.einsum(equation.replace(" ", ""), *values)
