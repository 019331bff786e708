"""Held-out items are answered in batches of one size, each item once, and in order."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.scenarios.training import filled_batches, joined


@pytest.mark.parametrize(("items", "batch"), [(1, 1), (7, 3), (6, 3), (2, 5), (359, 32)])
def test_every_item_is_answered_once_and_in_order_whatever_the_batch(items: int, batch: int) -> None:
    inputs = {"image": np.arange(2.0 * items).reshape(items, 2)}
    batches = filled_batches(inputs, batch)
    assert {len(each["image"]) for each in batches} == {batch}
    assert len(batches) == -(-items // batch)
    answers = [{"logits": 10 * each["image"]} for each in batches]
    np.testing.assert_array_equal(joined(answers, items)["logits"], 10 * inputs["image"])
