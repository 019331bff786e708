"""The door: bad figures get a named error, good ones a table."""

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.verdict import (
    BadInput,
    Figures,
    NotFinite,
    NotPositive,
    OneBlock,
    OneContestant,
    UnequalBlocks,
    UnlikeQuantities,
    block_table,
)
from fairlap.verdict.blocks import log_of_positive
from fairlap.verdict.metric import COMPILE_TIME, LATENCY, THROUGHPUT, TIME_TO_FIRST_GRADIENT


def test_a_table_holds_logarithms_with_a_row_per_block() -> None:
    table = block_table({"a": [1.0, 2.0, 4.0], "b": [8.0, 8.0, 1.0]}, metric=THROUGHPUT, workload="w")
    np.testing.assert_allclose(np.exp(table.log_figures), [[1, 8], [2, 8], [4, 1]])
    np.testing.assert_allclose(np.exp(table.log_figures_of("b")), [8, 8, 1])
    assert (table.contestants, table.blocks, table.metric, table.workload) == (("a", "b"), 3, THROUGHPUT, "w")
    assert table.evidence == "between processes"
    assert block_table({"a": [1, 2], "b": [1, 2]}).metric is LATENCY


def test_the_ready_made_metrics_know_their_better_side_and_their_words() -> None:
    assert [(m.better, m.is_speed) for m in (LATENCY, THROUGHPUT)] == [("lower", True), ("higher", True)]
    for metric in (COMPILE_TIME, TIME_TO_FIRST_GRADIENT):
        assert (metric.better, metric.is_speed) == ("lower", False)


def test_two_blocks_and_two_contestants_are_enough_for_a_table() -> None:
    assert block_table({"a": [1.0, 2.0], "b": [2.0, 1.0]}).blocks == 2


@pytest.mark.parametrize(
    ("figures", "error", "words"),
    [
        ({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0]}, UnequalBlocks, "a has 3, b has 2; drop every block"),
        ({"a": [1.0, float("nan")], "b": [1.0, 2.0]}, NotFinite, "a: figure 2 is nan; leave out"),
        ({"a": [1.0, 2.0], "b": [float("inf"), 2.0]}, NotFinite, "b: figure 1 is inf"),
        ({"a": [1.0, 2.0, 0.0], "b": [1.0, 2.0, 3.0]}, NotPositive, "a: figure 3 is 0.0; a ratio needs"),
        ({"a": [1.0, -2.0], "b": [1.0, 2.0]}, NotPositive, "a: figure 2 is -2.0"),
        ({"a": [1.0], "b": [2.0]}, OneBlock, "table: fewer than two blocks; nothing was repeated"),
        ({"a": [], "b": []}, OneBlock, "fewer than two blocks"),
        ({"a": [1.0, 2.0]}, OneContestant, "table: 1 contestants"),
        ({}, OneContestant, "0 contestants"),
    ],
)
def test_bad_figures_get_an_error_with_a_name_and_a_place(
    figures: dict[str, list[float]], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        block_table(figures)
    assert isinstance(caught.value, BadInput)
    assert isinstance(caught.value, FairlapError)


def test_an_error_names_the_workload() -> None:
    with pytest.raises(OneBlock, match="resnet: fewer"):
        block_table({"a": [1.0], "b": [2.0]}, workload="resnet")
    with pytest.raises(OneContestant, match="resnet: 1"):
        block_table({"a": [1.0]}, workload="resnet")


def test_logarithms_are_natural() -> None:
    np.testing.assert_allclose(log_of_positive([1.0, np.e, 1e-300], "x"), [0.0, 1.0, -690.7755278982137])


def test_a_table_has_one_quantity_and_none_is_made_of_unlike_ones() -> None:
    wall, span = Figures("wall_ns", [1.0, 2.0]), Figures("device_span_ns", [1.0, 2.0])
    assert block_table({"a": wall, "b": wall}).quantity == "wall_ns"
    with pytest.raises(UnlikeQuantities) as refused:
        block_table({"a": wall, "b": span})
    assert refused.value.code == "E_UNLIKE_QUANTITIES"
    with pytest.raises(UnlikeQuantities):
        block_table({"a": wall, "b": Figures("", [1.0, 2.0])})
