"""The name of an operation holds its sizes, and its counts follow from them."""

from __future__ import annotations

import math
from itertools import product

import pytest
from fairlap.models.operations.kinds import KINDS, Convolution, Embedding, Gemm, Gru, Lstm, Rnn, operation_named
from fairlap.models.operations.operation import Operation
from fairlap.models.registry import find, follows_data, spec_at

SMALL: list[Operation] = [
    Gemm(5, 3, 7),
    Gemm(5, 3, 7, a_transposed=True),
    Gemm(5, 3, 7, b_transposed=True),
    Gemm(1, 1, 1, a_transposed=True, b_transposed=True),
    Convolution(2, 3, 9, 7, 4, 3, 2, 1, 0, 2, 1),
    Convolution(1, 1, 5, 5, 1, 1, 1, 3, 3, 2, 2),
    Rnn(5, 2, 4),
    Lstm(5, 2, 4),
    Gru(5, 2, 4),
    Embedding(9, 4, 6),
]


def multiplied(operation: Operation) -> int:
    """Count one by one, or by how often each weight is used."""
    if isinstance(operation, Gemm):
        return sum(1 for _ in product(range(operation.m), range(operation.n), range(operation.k)))
    if isinstance(operation, Convolution):
        whole_width = operation.width + 2 * operation.pad_width
        whole_height = operation.height + 2 * operation.pad_height
        across = [x for x in range(0, whole_width, operation.stride_width) if x + operation.filter_width <= whole_width]
        down = [
            y for y in range(0, whole_height, operation.stride_height) if y + operation.filter_height <= whole_height
        ]
        weights = math.prod(operation.weights[0].shape)
        return operation.images * len(across) * len(down) * weights
    if isinstance(operation, Embedding):
        return 0
    assert isinstance(operation, Rnn | Lstm | Gru)
    weights = sum(math.prod(weight.shape) for weight in operation.weights)
    return weights * operation.steps * operation.sequences


def test_every_kind_of_networks_is_among_the_small_ones() -> None:
    assert {type(each) for each in SMALL} == {each for each in KINDS if each.implemented_in == Gemm.implemented_in}


@pytest.mark.parametrize("operation", SMALL, ids=lambda each: each.name)
def test_a_name_leads_back_to_its_operation(operation: Operation) -> None:
    assert operation_named(operation.name) == operation
    found = find(operation.name)
    assert found.spec == operation.spec() == spec_at(found.package)
    assert not follows_data(found.package)


@pytest.mark.parametrize("operation", SMALL, ids=lambda each: each.name)
def test_multiplications_are_those_that_are_counted_one_by_one(operation: Operation) -> None:
    assert operation.macs == multiplied(operation)
    assert operation.operations == 2 * operation.macs
    assert operation.spec().gmacs_per_item == pytest.approx(operation.macs / 1e9)


def test_bytes_are_those_of_each_array_once_in_float32() -> None:
    assert Gemm(5, 3, 7).bytes == 4 * (5 * 7 + 7 * 3 + 5 * 3)
    assert Lstm(5, 2, 4).bytes == 4 * (2 * 4 * 5 * 5 + 2 * 4 * 2 * 5)
    assert Gemm(5, 3, 7).intensity == pytest.approx(2 * 105 / 284)


def test_a_lookup_moves_the_rows_that_it_finds_and_not_the_table() -> None:
    assert Embedding(1000, 4, 6).bytes == 6 * 4 + 2 * 6 * 4 * 4
    assert Embedding(1000, 4, 6).bytes_to_race > 1000 * 4 * 8


@pytest.mark.parametrize(
    "name",
    [
        "gemm",
        "gemm-m0-n1-k1",
        "gemm-m01-n1-k1",
        "gemm-m1-n1-k1-bt-at",
        "lstm-h4-b2",
        "embedding-r9-d0-n6",
        "conv-n1-c1-w3-h3-k1-f5x5-p0x0-s1x1",  # the filter is larger than the image
        "conv-n1-c1-w3-h3-k1-f1x1-p0x0-s0x1",
        "hard-sum-r0-n5-c1",
        "hard-sum-r1-n5-c9",
        "hard-solve-hilbert-n10",
        "hard-dot-r1-n1-c0",
        "hard-sum-r1-n5",
        "qr-m3-n4",
        "svd-m0-n0",
        "spmv-n4-z5",
        "random-normal-n10",
        "fft-n8-b0",
        "eigh-n0",
        "sort-r1-n0",
    ],
)
def test_what_has_no_possible_sizes_is_not_an_operation(name: str) -> None:
    assert operation_named(name) is None
