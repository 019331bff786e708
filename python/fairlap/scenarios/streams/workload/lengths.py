"""How many tokens each answer is asked to have: always as many, or drawn from a distribution."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD
from fairlap.scenarios.streams.prompts import MOST_TOKENS

_UNIFORM = re.compile(r"(\d{1,9})-(\d{1,9})")
_LOGNORMAL = re.compile(r"lognormal:mean=(\d{1,9}):cv=(\d{1,3}(?:\.\d{1,9})?)")
_MOST_CV = 10.0
_LENGTHS = 4  # the stream of random numbers


@dataclass(frozen=True)
class Lengths:
    """Evenly from ``least`` to ``most`` or, with a ``mean``, log-normal with a coefficient of variation ``cv``."""

    least: int
    most: int
    mean: int = 0
    cv: float = 0.0

    @property
    def text(self) -> str:
        if self.mean:
            return f"lognormal:mean={self.mean}:cv={self.cv:g}"
        return f"{self.least}" if self.least == self.most else f"{self.least}-{self.most}"

    @property
    def are_equal(self) -> bool:
        return self.least == self.most and not self.mean

    @property
    def usual(self) -> int:
        return self.mean or (self.least + self.most) // 2

    def draw(self, count: int, seed: int) -> npt.NDArray[np.int64]:
        random = np.random.default_rng([seed, _LENGTHS])
        if not self.mean:
            return random.integers(self.least, self.most, count, endpoint=True)
        variance = math.log1p(self.cv**2)
        drawn = random.lognormal(math.log(self.mean) - variance / 2, math.sqrt(variance), count)
        return np.clip(np.rint(drawn), self.least, self.most).astype(np.int64)


def lengths_named(text: str) -> Lengths:
    """Read ``64``, ``16-256`` or ``lognormal:mean=200:cv=1``."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return _within_bounds(text, Lengths(int(text), int(text)))
    if found := _UNIFORM.fullmatch(text):
        return _within_bounds(text, Lengths(int(found[1]), int(found[2])))
    if (found := _LOGNORMAL.fullmatch(text)) and 0 < float(found[2]) <= _MOST_CV and 0 < int(found[1]) <= MOST_TOKENS:
        return Lengths(1, MOST_TOKENS, int(found[1]), float(found[2]))
    raise _refused(text)


def _within_bounds(text: str, found: Lengths) -> Lengths:
    if not 1 <= found.least <= found.most <= MOST_TOKENS:
        raise _refused(text)
    return found


def _refused(text: str) -> InvalidRequest:
    return InvalidRequest(
        f"--tokens must be between 1 and {MOST_TOKENS:,} (got {text}); write 64, 16-256 or lognormal:mean=200:cv=1",
        code=E_LOAD,
    )
