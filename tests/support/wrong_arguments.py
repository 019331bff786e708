"""Wrong values for every argument of the public functions, and how a function that was given one ended."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import fairlap
import numpy as np
from fairlap.errors import FairlapError


class Anything:
    """A class that may be called with anything, as a function that is given may."""

    def __init__(self, *arguments: object, **options: object) -> None:
        pass


RUBBISH: Mapping[str, Any] = {
    "None": None,
    "an array": np.arange(6.0).reshape(2, 3),
    "a set": {3, "a"},
    "a class": Anything,
    "an object": object(),
    "not a number": math.nan,
    "infinity": math.inf,
    "a huge number": 10**30,
    "a negative number": -1,
    "a truth": True,
    "bytes": b"torch",
    "an empty text": "",
    "a text": "no such thing",
    "a text with a zero": "a\0b",
    "an empty list": [],
    "an empty mapping": {},
    "a list of wrong things": [None, 1.5],
    "a mapping of wrong things": {1: None},
}

_OF_LIBRARIES = re.compile(
    r"msgspec|got `|`\$|has no attribute|not subscriptable|not iterable|object at 0x|unhashable|ambiguous|allow_pickle|"
    r"expected str instance|must be real number|unsupported operand|inhomogeneous|invalid literal|could not convert"
)


class Accepted(Exception):
    """Raised in place of a race: the arguments were fit for one."""


@dataclass(frozen=True)
class Called:
    """A function with arguments that it takes; each of them is replaced by rubbish in turn."""

    function: str
    positional: tuple[Any, ...]
    options: Mapping[str, Any]
    further: str = ""  # options that are not given otherwise

    @property
    def places(self) -> list[int | str]:
        return [*range(len(self.positional)), *self.options, *self.further.split()]

    def with_rubbish(self, place: int | str, value: object) -> str:
        """Call it, and say what is wrong with how that ended; empty where nothing is."""
        positional, options = list(self.positional), dict(self.options)
        if isinstance(place, int):
            positional[place] = value
        else:
            options[place] = value
        function: Callable[..., object] = getattr(fairlap, self.function)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*positional, **options)
        except Accepted:
            return ""
        except FairlapError as error:
            text = str(error)
            found = None if " raised " in text else _OF_LIBRARIES.search(text)  # what a callable raised is quoted
            return "no message" if not text else f"{found.group()!r} in {text!r}" if found else ""
        except TypeError as error:
            of_the_call = error.__traceback__ is not None and error.__traceback__.tb_next is None
            return "" if of_the_call else f"TypeError: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""
