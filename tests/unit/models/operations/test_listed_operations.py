"""The lists hold what was published, and patterns select from them."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.operations.kinds import Convolution, Gemm, Lstm, operation_named
from fairlap.models.operations.listed import is_pattern, listed_operations, operations_matching
from fairlap.models.registry import find

COUNTS = {  # of different shapes, in DeepBench's files
    "deepbench-device": {"gemm": 13, "conv": 15, "rnn": 2, "lstm": 1},
    "deepbench-server": {"gemm": 75, "conv": 103, "lstm": 15, "gru": 54},
    "deepbench-training": {"gemm": 160, "conv": 90, "rnn": 12, "lstm": 22, "gru": 19},
    "language-models": {"embedding": 8},
}


def names_matching(pattern: str) -> list[str]:
    return [each.operation.name for each in operations_matching(pattern)]


def test_every_published_list_is_whole() -> None:
    in_lists = [(name, each.operation.kind) for each in listed_operations() for name in each.lists]
    found = Counter((name, kind) for name, kind in in_lists if name in COUNTS)
    assert found == {(name, kind): count for name, kinds in COUNTS.items() for kind, count in kinds.items()}


def test_every_operation_is_listed_once_and_found_by_its_name() -> None:
    operations = [each.operation for each in listed_operations()]
    assert len(set(operations)) == len(operations)
    assert all(operation_named(each.name) == each for each in operations)


def test_every_listed_operation_has_a_spec_whose_weights_add_up() -> None:
    for each in listed_operations():
        spec = each.operation.spec()
        assert spec.parameters == sum(math.prod(weight.shape) for weight in spec.weights)
        assert all(size >= 1 for tensor in (*spec.inputs, *spec.outputs) for size in tensor.sized(1))


@pytest.mark.parametrize(
    ("operation", "lists"),
    [
        (Gemm(5124, 700, 2048), ("deepbench-device", "deepbench-server")),
        (Gemm(7680, 5481, 2560, b_transposed=True), ("deepbench-training",)),
        (Convolution(4, 1, 700, 161, 32, 20, 5, 0, 0, 2, 2), ("deepbench-server", "deepbench-training")),
        (Lstm(256, 1, 150), ("deepbench-device", "deepbench-server")),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_published_shapes_are_in_their_lists(operation: object, lists: tuple[str, ...]) -> None:
    assert [each.lists for each in listed_operations() if each.operation == operation] == [lists]


def test_a_pattern_selects_by_name_and_by_list() -> None:
    assert len(names_matching("deepbench-device/*")) == 31
    assert len(names_matching("deepbench-device/conv-*")) == 15
    assert names_matching("deepbench-device/lstm*") == ["lstm-h256-b1-t150"]
    assert (
        set(names_matching("gemm-*-bt")) <= set(names_matching("gemm-*")) == set(names_matching("deepbench-*/gemm-*"))
    )


def test_wildcards_and_lists_make_a_pattern_and_names_and_paths_do_not() -> None:
    assert is_pattern("conv-*")
    assert is_pattern("deepbench-server/gemm-m512-n1-k512")
    assert not any(map(is_pattern, ("gemm-m512-n1-k512", "resnet50", "models/net.onnx", "./my_worker")))


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("gemm-m5124-n700-k204", "gemm-m5124-n700-k2048"),
        ("deepbench-device/lstm-h256-b1-t151*", "lstm-h256-b1-t150"),
        ("cnv-*", "conv-*"),
    ],
)
def test_a_pattern_that_matches_nothing_gets_near_names(wrong: str, meant: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        operations_matching(wrong)
    assert raised.value.code == "E_OPERATION"
    assert meant in str(raised.value)


def test_a_misspelt_name_gets_near_names() -> None:
    with pytest.raises(InvalidRequest) as raised:
        find("lstm-h256-b1-t15O")
    assert "lstm-h256-b1-t150" in str(raised.value)
