"""Where an answer token by token leaves the reference: the first token that is another one, and by how much.

An answer has the logits of every step, or where a runtime hands out none, its tokens alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays

CHOSEN_TOKENS = "chosen_tokens"
"""The array of an answer without logits: the tokens that were chosen after those that were handed over."""

OWN_TOKENS = "own_tokens"
"""The same of a runtime that cannot be handed any: each was chosen after those that it had chosen itself."""


def first_difference(logits: npt.NDArray[Any], chosen: npt.NDArray[Any], reference: npt.NDArray[np.float64]) -> str:
    """Describe it, where there is one.

    Logits have an axis for items, one for steps and one for the vocabulary; ``chosen`` are those of the chosen tokens.
    The margin is by how much the reference prefers its own token: the difference of the two logits.
    """
    if logits.shape != reference.shape or not np.isfinite(logits).all():
        return ""
    own, right = logits.argmax(axis=2), reference.argmax(axis=2)
    if (found := _first(own != right)) is not None:
        return _other(own, reference, found)
    short = logits.max(axis=2) - chosen
    if (found := _first(~(short <= 0))) is not None:
        return f"{_place(*found)} is not the one with its largest logit, by {float(short[found]):.2g}"
    return "every token is that of the reference"


def other_tokens(logits: npt.NDArray[Any], chosen: npt.NDArray[Any], reference: npt.NDArray[np.float64]) -> str:
    """Count those of a right answer that are others than the reference's, and describe the first; empty without one."""
    if logits.shape != reference.shape:
        return ""
    other = logits.argmax(axis=2) != reference.argmax(axis=2)
    return _counted(other, first_difference(logits, chosen, reference)) if other.any() else ""


def tokens_alone(answer: Arrays) -> npt.NDArray[np.int64] | None:
    """Take the tokens of an answer without logits, an axis for items and one for steps; None of one that has some."""
    found = next((answer[name] for name in (CHOSEN_TOKENS, OWN_TOKENS) if name in answer), None)
    return None if found is None else found.astype(np.int64)


def why_no_tokens(tokens: npt.NDArray[np.int64], logits: npt.NDArray[np.float64]) -> str:
    """Say why they cannot be compared with the logits of every step; empty where they can."""
    if tokens.shape != logits.shape[:2]:
        return f"its tokens are {list(tokens.shape)}, not {list(logits.shape[:2])}"
    outside = (tokens < 0) | (tokens >= logits.shape[2])
    if outside.any():
        return f"it chose {int(tokens[outside][0])}, which is not one of the {logits.shape[2]:,} tokens"
    return ""


def logits_of(tokens: npt.NDArray[np.int64], logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.take_along_axis(logits, tokens[..., None], axis=2)[..., 0]


def differing_tokens(tokens: npt.NDArray[np.int64], reference: npt.NDArray[np.float64]) -> str:
    """Count those that are others than the reference's, and describe the first; empty without one.

    ``reference`` has the logits after the tokens that this answer read, so each is judged by what came before it.
    """
    other = tokens != reference.argmax(axis=2)
    found = _first(other)
    return "" if found is None else _counted(other, _other(tokens, reference, found))


def first_beyond(
    tokens: npt.NDArray[np.int64], reference: npt.NDArray[np.float64], allowed: npt.NDArray[np.float64]
) -> str:
    """Describe the first token whose margin is larger than what rounding explains; empty without one."""
    found = _first(~(reference.max(axis=2) - logits_of(tokens, reference) <= allowed))
    if found is None:
        return ""
    return f"{_other(tokens, reference, found)}, and rounding explains {float(allowed[found]):.2g}"


def _other(own: npt.NDArray[Any], reference: npt.NDArray[np.float64], found: tuple[int, int]) -> str:
    item, step = found
    other, expected = int(own[found]), int(reference[found].argmax())
    margin = float(reference[item, step, expected] - reference[item, step, other])
    where = _place(item, step)
    return f"{where} is {other}, in the reference {expected}, whose logit is larger there by {margin:.2g}"


def _counted(other: npt.NDArray[np.bool_], where: str) -> str:
    return f"{other.size - int(other.sum())} of {other.size} tokens are those of the reference; {where}"


def _first(differs: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    """In the order of the steps: what follows a wrong token may be wrong because of it."""
    found = np.argwhere(differs.T)
    return (int(found[0][1]), int(found[0][0])) if len(found) else None


def _place(item: int, step: int) -> str:
    return f"token {step + 1} of prompt {item + 1}"
