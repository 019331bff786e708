from __future__ import annotations

import numpy as np
import pytest
from fairlap.models.rank_parts import part_of, why_not_divided
from fairlap.models.registry import find
from fairlap.models.training.mistakes import mistake_of_ranks
from fairlap.request.work import Mode


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ranks_together_have_every_item_once_and_in_order(count: int) -> None:
    items = np.arange(8)
    assert np.concatenate([part_of(items, number, count) for number in range(count)]).tolist() == items.tolist()


@pytest.mark.parametrize(
    ("model", "mode", "batch", "is_divided"),
    [
        ("digits", "train", 8, True),
        ("digits", "train", 7, False),
        ("digits", "grad", 8, False),
        ("mnist", "train", 8, False),
        ("mnist", "infer", 8, True),
    ],
)
def test_works_that_ranks_cannot_share_have_a_reason(model: str, mode: Mode, batch: int, is_divided: bool) -> None:
    assert (why_not_divided(find(model).spec, mode, batch, 2) == "") == is_divided


def test_what_ranks_did_follows_from_all_of_their_states() -> None:
    own = [f"it trains on the part of the batch of rank {number} alone" for number in range(2)]
    assert "do not exchange" in mistake_of_ranks(own)
    assert "same part" in mistake_of_ranks([own[0], own[0]])
    assert mistake_of_ranks([own[0], ""]) == ""
    assert mistake_of_ranks([""]) == ""
