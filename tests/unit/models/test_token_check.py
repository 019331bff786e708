"""The first token of an answer that is another one than the reference's, in the order in which tokens were chosen."""

from __future__ import annotations

import re

import numpy as np
from fairlap.models.checks.token_check import (
    differing_tokens,
    first_beyond,
    first_difference,
    tokens_alone,
    why_no_tokens,
)
from hypothesis import given
from hypothesis import strategies as st

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


def test_tokens_alone_are_compared_with_what_the_reference_prefers_at_each_step() -> None:
    reference = logits()
    right = reference.argmax(axis=2)
    assert differing_tokens(right, reference) == ""
    other = right.copy()
    other[0, 3] = (right[0, 3] + 1) % VOCABULARY
    other[1, 1] = (right[1, 1] + 2) % VOCABULARY
    margin = reference[1, 1].max() - reference[1, 1, other[1, 1]]
    count, of_all, token, prompt, found, expected, by = numbers(differing_tokens(other, reference))
    assert (count, of_all, token, prompt) == (6, 8, 2, 2)
    assert (found, expected) == (other[1, 1], right[1, 1])
    assert abs(by - margin) <= 0.06 * margin


@given(st.floats(0, 4), st.integers(0, 2**32 - 1))
def test_the_first_token_beyond_a_bound_is_found_exactly_where_there_is_one(bound: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference, tokens = rng.standard_normal((ITEMS, STEPS, VOCABULARY)), rng.integers(0, VOCABULARY, (ITEMS, STEPS))
    margins = reference.max(axis=2) - np.take_along_axis(reference, tokens[..., None], axis=2)[..., 0]
    found = first_beyond(tokens, reference, np.full((ITEMS, STEPS), bound))
    assert (found == "") == bool((margins <= bound).all())
    if found:
        step = int(np.argmax((margins > bound).any(axis=0)))
        assert numbers(found)[:2] == [step + 1, int(np.argmax(margins[:, step] > bound)) + 1]


def test_tokens_that_cannot_be_compared_are_found_before() -> None:
    reference = logits()
    assert why_no_tokens(np.zeros((ITEMS, STEPS), np.int64), reference) == ""
    assert numbers(why_no_tokens(np.full((ITEMS, STEPS), 9), reference)) == [9, VOCABULARY]
    assert numbers(why_no_tokens(np.zeros((ITEMS, 3), np.int64), reference)) == [ITEMS, 3, ITEMS, STEPS]
    assert tokens_alone({"logits": reference}) is None
    assert tokens_alone({"own_tokens": np.ones((1, 2), np.int32)}) is not None
