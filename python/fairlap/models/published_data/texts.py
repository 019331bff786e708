"""Texts with what is right about them, as a reader of a published layout returns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True)
class Texts:
    """``labels`` are a number or a value for each item; ``spans`` the characters of right answers in the second text.

    The first character of a span and the one after its last one; an item without an answer has no span.
    """

    first: Sequence[str]
    second: Sequence[str] | None = None
    labels: npt.NDArray[Any] | None = None
    spans: Sequence[Sequence[tuple[int, int]]] | None = None
