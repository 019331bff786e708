"""Other inputs than those that a contestant was prepared for, at which it is called to see what compiling does then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from fairlap.errors import InvalidRequest

CODE = "E_RECOMPILE"

InputType = Literal["float64", "float32", "float16", "bfloat16", "int64", "int32"]
"""Of the inputs that hold such numbers: floating-point ones, or integers."""

_SIZE = re.compile(r"(?P<name>[a-z][a-z0-9_]*)=(?P<size>\d{1,9})", re.ASCII)


class OtherInputs(msgspec.Struct, frozen=True):
    """At the work's batch: of another type, or with another size of the model's, such as its tokens."""

    type: InputType | None = None
    size: str = ""  # its name
    to: int = 0

    @property
    def text(self) -> str:
        return self.type or f"{self.size}={self.to}"

    @property
    def free_sizes(self) -> dict[str, int]:
        return {self.size: self.to} if self.size else {}


def batches_and_others(asked: Iterable[int | str]) -> tuple[tuple[int, ...], tuple[OtherInputs, ...]]:
    """Each once, in the order of the request: what is compiled for one may serve the next."""
    batches: list[int] = []
    others: list[OtherInputs] = []
    for each in asked:
        if isinstance(each, int) or (each.isascii() and each.isdecimal()):
            batches.append(int(each))
        else:
            others.append(_other_inputs(each))
    return tuple(dict.fromkeys(batches)), tuple(dict.fromkeys(others))


def _other_inputs(text: str) -> OtherInputs:
    for kind in get_args(InputType):
        if text == kind:
            return OtherInputs(kind)
    found = _SIZE.fullmatch(text)
    if found is None:
        raise InvalidRequest(
            f"--recompile takes batches, sizes such as tokens=64, and types such as float64 (got {text!r}); the types "
            f"are {', '.join(get_args(InputType))}",
            code=CODE,
        )
    return OtherInputs(size=found["name"], to=int(found["size"]))
