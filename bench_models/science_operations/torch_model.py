"""The operations as PyTorch modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from fairlap.models.arrays import Arrays
from fairlap.models.operations.science import Fourier, RandomNormal, RandomUniform, Science, SegmentSum, SparseProduct
from torch import nn


class Sparse(nn.Module):
    """The matrix is a parameter in CSR, whose values are the weight."""

    def __init__(self, product: SparseProduct, values: Any) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor(values))
        rows = torch.arange(0, product.n * product.nonzeros + 1, product.nonzeros)
        columns = torch.tensor(product.columns.reshape(-1)).long()
        self.matrix = torch.sparse_csr_tensor(rows, columns, self.values.detach(), (product.n, product.n))

    def _apply(self, change: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Take the matrix along where parameters go to another device."""
        self.matrix = change(self.matrix)
        return super()._apply(change, recurse)

    def forward(self, x: Any) -> tuple[Any]:
        return (torch.mv(self.matrix, x),)


class Computed(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, **inputs: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.function(**inputs)
        return found


def _transformed(operation: Fourier) -> Callable[..., Any]:
    axes = tuple(range(1, 1 + len(operation.shape)))

    def fft(signal: Any) -> tuple[Any, Any]:
        found = torch.fft.rfftn(signal, dim=axes)
        return found.real, found.imag

    return fft


def _drawn(draw: Callable[..., Any], count: int) -> Callable[..., Any]:
    """By the library's own generator, which goes on from call to call whatever the seed."""
    return lambda seed: (draw(count, device=seed.device),)


def _summed(operation: SegmentSum) -> Callable[..., Any]:
    def summed(data: Any, segments: Any) -> tuple[Any]:
        return (data.new_zeros(operation.segments, operation.width).index_add_(0, segments, data),)

    return summed


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "solve": lambda a, b: (torch.linalg.solve(a, b),),
    "qr": lambda a: tuple(torch.linalg.qr(a)),
    "svd": lambda a: tuple(torch.linalg.svd(a, full_matrices=False)),
    "eigh": lambda a: tuple(torch.linalg.eigh(a)),
    "cholesky": lambda a: (torch.linalg.cholesky(a),),
    "sort": lambda numbers: (torch.sort(numbers, -1).values,),
}


class Implementation:
    def __init__(self, operation: Science) -> None:
        self._operation = operation

    def build(self, weights: Arrays) -> Any:
        match self._operation:
            case SparseProduct() as product:
                return Sparse(product, weights["values"]).eval()
            case Fourier() as transform:
                return Computed(_transformed(transform)).eval()
            case RandomUniform(n):
                return Computed(_drawn(torch.rand, n)).eval()
            case RandomNormal(n):
                return Computed(_drawn(torch.randn, n)).eval()
            case SegmentSum() as summed:
                return Computed(_summed(summed)).eval()
            case operation:
                return Computed(_FUNCTIONS[operation.function]).eval()
