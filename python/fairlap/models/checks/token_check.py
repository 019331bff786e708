"""Where an answer token by token leaves the reference: the first token that is another one, and by how much."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def first_difference(logits: npt.NDArray[Any], chosen: npt.NDArray[Any], reference: npt.NDArray[np.float64]) -> str:
    """Describe it, where there is one.

    Logits have an axis for items, one for steps and one for the vocabulary; ``chosen`` are those of the chosen tokens.
    The margin is by how much the reference prefers its own token: the difference of the two logits.
    """
    if logits.shape != reference.shape or not np.isfinite(logits).all():
        return ""
    own, right = logits.argmax(axis=2), reference.argmax(axis=2)
    if (found := _first(own != right)) is not None:
        item, step = found
        other, expected = int(own[found]), int(right[found])
        margin = float(reference[item, step, expected] - reference[item, step, other])
        where = _place(item, step)
        return f"{where} is {other}, in the reference {expected}, whose logit is larger there by {margin:.2g}"
    short = logits.max(axis=2) - chosen
    if (found := _first(~(short <= 0))) is not None:
        return f"{_place(*found)} is not the one with its largest logit, by {float(short[found]):.2g}"
    return "every token is that of the reference"


def other_tokens(logits: npt.NDArray[Any], chosen: npt.NDArray[Any], reference: npt.NDArray[np.float64]) -> str:
    """Count those of a right answer that are others than the reference's, and describe the first; empty without one."""
    if logits.shape != reference.shape:
        return ""
    other = int((logits.argmax(axis=2) != reference.argmax(axis=2)).sum())
    if not other:
        return ""
    count, where = logits.shape[0] * logits.shape[1], first_difference(logits, chosen, reference)
    return f"{count - other} of {count} tokens are those of the reference; {where}"


def _first(differs: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    """In the order of the steps: what follows a wrong token may be wrong because of it."""
    found = np.argwhere(differs.T)
    return (int(found[0][1]), int(found[0][0])) if len(found) else None


def _place(item: int, step: int) -> str:
    return f"token {step + 1} of prompt {item + 1}"
