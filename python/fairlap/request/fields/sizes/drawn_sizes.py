"""Sizes of calls that are drawn, ``seq=lognormal(4,0.5):8..512``, where there is no file of a user's own calls."""

from __future__ import annotations

import math
import random
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from fairlap.errors import InvalidRequest
from fairlap.suggestions import not_one_of

CODE = "E_SHAPES"
DRAWN = 16  # sizes, each of which is proven, bound to inputs and compiled for
LARGEST = 2**20
EXAMPLE = "seq=lognormal(4,0.5):8..512"

_TEXT = re.compile(
    r"(?P<name>[^=]+)=\s*(?P<family>[a-z]+)\s*(?:\((?P<numbers>[^()]*)\))?\s*:\s*(?P<low>\d+)\.\.(?P<high>\d+)",
    re.ASCII,
)


@dataclass(frozen=True)
class _Family:
    numbers: int  # that it takes
    are_right: Callable[..., bool]
    weight: Callable[..., float]  # of a size, given how far it is from the smallest one, and the numbers
    form: str


_FAMILIES: Mapping[str, _Family] = {
    "uniform": _Family(0, lambda: True, lambda size, above: 1.0, "uniform"),
    "lognormal": _Family(
        2,
        lambda mean, deviation: deviation > 0,
        lambda size, above, mean, deviation: math.exp(-(((math.log(size) - mean) / deviation) ** 2) / 2) / size,
        "lognormal(MEAN,DEVIATION) of the logarithm, with a deviation above 0",
    ),
    "geometric": _Family(
        1,
        lambda share: 0 < share < 1,
        lambda size, above, share: math.exp(above * math.log1p(-share)),
        "geometric(SHARE), with a share between 0 and 1",
    ),
    "zipf": _Family(
        1,
        lambda power: power > 0,
        lambda size, above, power: math.exp(-power * math.log(size)),
        "zipf(POWER), with a power above 0",
    ),
}


def is_drawn(text: str) -> bool:
    """Whether this names a distribution rather than a file, as far as its form shows."""
    return "=" in text


def drawn_sizes(text: str, seed: int) -> tuple[str, Counter[int]]:
    """Name the dimension, and draw its sizes: one from each sixteenth of the distribution, so that few tell its form.

    Raises InvalidRequest for text that cannot be read.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise InvalidRequest(f"--shapes-from {text} is neither a file nor a distribution such as {EXAMPLE}", code=CODE)
    family = _FAMILIES.get(found["family"])
    if family is None:
        raise InvalidRequest(f"--shapes-from {text}: {not_one_of(found['family'], _FAMILIES)}", code=CODE)
    numbers = _numbers(text, found["numbers"] or "", family)
    low, high = _limits(text, found["low"], found["high"])
    weights = [family.weight(size, size - low, *numbers) for size in range(low, high + 1)]
    below = list(accumulate(weights))
    if not below[-1] > 0:
        raise InvalidRequest(f"--shapes-from {text}: it has nothing between {low} and {high}", code=CODE)
    drawn = random.Random(f"sizes {seed}")
    places = (bisect_left(below, (part + drawn.random()) / DRAWN * below[-1]) for part in range(DRAWN))
    return found["name"].strip(), Counter(low + min(place, high - low) for place in places)


def _numbers(text: str, given: str, family: _Family) -> tuple[float, ...]:
    try:
        found = tuple(float(each) for each in given.split(",")) if given.strip() else ()
    except ValueError:
        found = (math.nan,)
    if len(found) != family.numbers or not all(map(math.isfinite, found)) or not family.are_right(*found):
        raise InvalidRequest(f"--shapes-from {text}: write {family.form}", code=CODE)
    return found


def _limits(text: str, *given: str) -> tuple[int, int]:
    low, high = (int(each) if len(each) <= len(str(LARGEST)) else LARGEST + 1 for each in given)
    if not 1 <= low <= high <= LARGEST:
        raise InvalidRequest(
            f"--shapes-from {text}: its sizes must go up from 1 or more to at most {LARGEST} (got {low}..{high})",
            code=CODE,
        )
    return low, high
