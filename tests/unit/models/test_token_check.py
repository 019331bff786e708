"""The first token of an answer that is another one than the reference's, in the order in which tokens were chosen."""

from __future__ import annotations

import re

import numpy as np
from fairlap.models.checks.token_check import first_difference

ITEMS, STEPS, VOCABULARY = 2, 4, 5


def logits() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((ITEMS, STEPS, VOCABULARY))


def numbers(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"\d+(?:\.\d+)?", text)]


def test_the_earliest_step_counts_and_the_margin_is_that_of_the_reference() -> None:
    reference = logits()
    got = reference.copy()
    got[0, 3] = np.roll(got[0, 3], 1)  # of another prompt, but later
    got[1, 2] = np.roll(got[1, 2], 2)
    expected = int(reference[1, 2].argmax())
    other = (expected + 2) % VOCABULARY
    margin = reference[1, 2, expected] - reference[1, 2, other]
    token, prompt, found, right, by = numbers(first_difference(got, got.max(axis=2), reference))
    assert (token, prompt, found, right) == (3, 2, other, expected)
    assert abs(by - margin) <= 0.06 * margin


def test_a_token_that_is_not_its_own_largest_logit_is_found_where_all_logits_are_right() -> None:
    reference = logits()
    chosen = reference.max(axis=2)
    chosen[0, 1] -= 0.5
    assert numbers(first_difference(reference, chosen, reference)) == [2, 1, 0.5]
    chosen[0, 1] = np.nan  # of a token that is not in the vocabulary
    assert numbers(first_difference(reference, chosen, reference)) == [2, 1]


def test_right_tokens_of_wrong_logits_have_no_place() -> None:
    reference = logits()
    assert numbers(first_difference(2 * reference, 2 * reference.max(axis=2), reference)) == []
    assert first_difference(reference[:, 1:], reference.max(axis=2), reference) == ""
    assert first_difference(np.full_like(reference, np.nan), reference.max(axis=2), reference) == ""
