"""Sparse weights of LiteRT files become what the format's own rule, written down as it is recursive, makes of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.sources.litert_files.expanded_weights import expanded_weight
from machine_marks import needs

needs("ai_edge_litert")

ROWS, COLUMNS = 6, 8


def level(size: int = 0, segments: list[int] | None = None, indices: list[int] | None = None) -> SimpleNamespace:
    """Dense of this size, or with the listed places."""
    if segments is None:
        return SimpleNamespace(format=0, denseSize=size)
    lists = SimpleNamespace(values=segments), SimpleNamespace(values=indices)
    return SimpleNamespace(format=1, denseSize=0, arraySegments=lists[0], arrayIndices=lists[1])


def tensor(levels: list[SimpleNamespace], order: list[int], blocks: list[int]) -> SimpleNamespace:
    sparsity = SimpleNamespace(traversalOrder=order, blockMap=blocks, dimMetadata=levels)
    return SimpleNamespace(shape=[ROWS, COLUMNS], sparsity=sparsity)


def drawn(block: tuple[int, int]) -> np.ndarray:
    """With about half of the blocks 0, and one row of blocks."""
    random = np.random.default_rng(block)
    kept = random.random((ROWS // block[0], COLUMNS // block[1])) < 0.5
    kept[1] = False
    values = random.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    return values * np.kron(kept, np.ones(block)).astype(np.float32)


@pytest.mark.parametrize("block", [(1, 1), (1, 4), (2, 2), (3, 1)])
def test_blocks_in_compressed_rows_go_to_their_places(block: tuple[int, int]) -> None:
    values, (high, wide) = drawn(block), block
    stored, segments, indices = [], [0], []
    for row in range(0, ROWS, high):
        for column in range(0, COLUMNS, wide):
            inside = values[row : row + high, column : column + wide]
            if inside.any():
                stored += inside.ravel().tolist()
                indices.append(column // wide)
        segments.append(len(indices))
    levels = [level(ROWS // high), level(0, segments, indices), level(high), level(wide)]
    found = expanded_weight(np.array(stored, np.float32), tensor(levels, [0, 1, 2, 3], [0, 1]), "kernel", widened=False)
    np.testing.assert_array_equal(found, values)


def test_columns_may_come_before_rows() -> None:
    values = drawn((1, 1))
    columns, rows = np.nonzero(values.T)
    segments = [0, *np.count_nonzero(values, axis=0).cumsum().tolist()]
    levels = [level(COLUMNS), level(0, segments, rows.tolist())]
    found = expanded_weight(values.T[columns, rows], tensor(levels, [1, 0], []), "kernel", widened=False)
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    "levels",
    [
        [level(ROWS), level(0, [0, 2**40], [0])],
        [level(2**40), level(2**40)],
        [level(ROWS), level(0, [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, COLUMNS])],
        [level(ROWS), level(0, [0, 1, 2, 3, 4, 5, 6], [0])],
        [level(ROWS), level(0, [6, 5, 4, 3, 2, 1, 0], list(range(6)))],
        [level(ROWS)],
    ],
    ids=["more than there is", "too large", "out of the rows", "too few places", "backwards", "one level"],
)
def test_a_damaged_form_is_refused_in_one_line_and_takes_no_memory(levels: list[SimpleNamespace]) -> None:
    with pytest.raises(FairlapError) as refused:
        expanded_weight(np.ones(6, np.float32), tensor(levels, [0, 1], []), "kernel", widened=False)
    assert refused.value.code == "E_SOURCE"
    assert "\n" not in str(refused.value)
