"""Typing errors keep the length of a text and what fills it up, and are as many as their severity says."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.data.corruptions.corruption import corrupted_items
from fairlap.models.slices.corruptible import CorruptibleInput
from fairlap.models.slices.typos import SHARES, mistyped, mistyped_numbers
from fairlap.request.fields.data.corruption import Corruption

MOST = 90


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_as_many_characters_are_mistyped_as_the_severity_says(severity: int) -> None:
    text = np.arange(1, 401, dtype=np.int64)  # each once, so that what moved can be seen
    found = mistyped_numbers(text, severity, MOST + 400, np.random.default_rng(0))
    assert (found.shape, found.dtype) == (text.shape, text.dtype)
    broken = np.count_nonzero(np.diff(found) != 1)
    wrong = round(SHARES[severity - 1] * len(text))
    assert wrong * 0.5 <= broken <= 3 * wrong + 1
    assert not np.array_equal(found, text)


def test_what_fills_up_a_text_stays() -> None:
    text = np.array([5, 9, 7, 3, 8, 6, 2, 4, 0, 0, 0, 0, 0, 0])
    for seed in range(40):
        found = mistyped_numbers(text, 5, MOST, np.random.default_rng(seed))
        assert (found[10:] == 0).all()
        assert found.shape == text.shape


def test_texts_of_a_batch_are_mistyped_alike_in_any_batch() -> None:
    texts = np.random.default_rng(1).integers(1, MOST, (4, 30)).astype(np.int32)
    of, corruption = CorruptibleInput("ids", "", 1, MOST), Corruption("typos", 4)
    whole = corrupted_items(texts, 0, corruption, of)
    assert np.array_equal(whole[2:], corrupted_items(texts[2:], 2, corruption, of))
    assert (whole != texts).any(axis=1).all()
    assert whole.max() <= MOST


def test_a_text_has_as_many_typing_errors_and_may_change_its_length() -> None:
    text = "the quick brown fox jumps over the lazy dog " * 5
    found = [mistyped(text, severity, np.random.default_rng(seed)) for severity in (1, 5) for seed in range(20)]
    assert all(each != text for each in found)
    assert {len(each) for each in found} != {len(text)}
    off = [sum(a != b for a, b in zip(each[:10], text[:10], strict=True)) for each in found]
    assert sum(off[20:]) > sum(off[:20])
    assert mistyped("", 5, np.random.default_rng(0)) == ""
    assert mistyped(text, 3, np.random.default_rng(1)) == mistyped(text, 3, np.random.default_rng(1))
