"""Operations as PyTorch modules."""

from __future__ import annotations

from typing import Any

import torch
from fairlap.models.arrays import Arrays
from fairlap.models.operations.kinds import Convolution, Embedding, Gemm, Lstm, Recurrent, Rnn
from fairlap.models.operations.operation import Operation
from torch import nn


class Product(nn.Module):
    def __init__(self, gemm: Gemm, a: Any) -> None:
        super().__init__()
        self.a = nn.Parameter(a)
        self.a_transposed, self.b_transposed = gemm.a_transposed, gemm.b_transposed

    def forward(self, b: Any) -> tuple[Any]:
        return (torch.matmul(self.a.t() if self.a_transposed else self.a, b.t() if self.b_transposed else b),)


class Convolved(nn.Module):
    def __init__(self, convolution: Convolution, filters: Any) -> None:
        super().__init__()
        self.filters = nn.Parameter(filters)
        self.stride = (convolution.stride_height, convolution.stride_width)
        self.padding = (convolution.pad_height, convolution.pad_width)

    def forward(self, images: Any) -> tuple[Any]:
        return (nn.functional.conv2d(images, self.filters, stride=self.stride, padding=self.padding),)


class Layer(nn.Module):
    def __init__(self, recurrent: Recurrent) -> None:
        super().__init__()
        size = recurrent.hidden
        if isinstance(recurrent, Rnn):
            self.layer: Any = nn.RNN(size, size, nonlinearity="relu", bias=False)
        elif isinstance(recurrent, Lstm):
            self.layer = nn.LSTM(size, size, bias=False)
        else:
            self.layer = nn.GRU(size, size, bias=False)

    def forward(self, sequence: Any) -> tuple[Any]:
        return (self.layer(sequence)[0],)


class Lookup(nn.Module):
    def __init__(self, table: Any) -> None:
        super().__init__()
        self.table = nn.Parameter(table)

    def forward(self, numbers: Any) -> tuple[Any]:
        return (nn.functional.embedding(numbers, self.table),)


class Implementation:
    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def build(self, weights: Arrays) -> Any:
        tensors = {name: torch.tensor(array) for name, array in weights.items()}
        return self._module(tensors).eval()

    def _module(self, tensors: dict[str, Any]) -> Any:
        operation = self._operation
        match operation:
            case Gemm():
                return Product(operation, tensors["a"])
            case Convolution():
                return Convolved(operation, tensors["filters"])
            case Recurrent():
                layer = Layer(operation)
                layer.load_state_dict(tensors)
                return layer
            case Embedding():
                return Lookup(tensors["table"])
            case _:
                raise TypeError(operation)
