"""Sizes that a contestant pads its inputs up to before it calls the model: ``torch:pad=64``, ``jax:bucket=32+64+128``.

Whatever speaks the worker protocol imports this module, so it must stay light.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from fairlap.errors import InvalidRequest

PAD, BUCKET = "pad", "bucket"
OPTIONS = (PAD, BUCKET)
CODE = "E_PADDING"

Shapes = dict[str, tuple[int, ...]]

_MOST_DIGITS = 7


class Padding(msgspec.Struct, frozen=True):
    """Up to the next multiple, or to the next of several buckets."""

    multiple: int = 0
    buckets: tuple[int, ...] = ()  # ascending

    def up_from(self, size: int) -> int | None:
        """Find what a size is padded to; None where it is larger than every bucket."""
        if self.multiple:
            return -(-size // self.multiple) * self.multiple
        return next((bucket for bucket in self.buckets if bucket >= size), None)


class PaddedSize(msgspec.Struct, frozen=True):
    """One size of calls, as shapes: what calls are given, what the model gets, and what they give back."""

    given: Shapes
    inputs: Shapes
    outputs: Shapes


def goes_to_one_size(sizes: tuple[PaddedSize, ...]) -> bool:
    """Whether the model gets no other size than the one that it is prepared for."""
    return bool(sizes) and all(each.inputs == sizes[0].inputs for each in sizes)


def padding_in(options: Mapping[str, str]) -> Padding | None:
    """Read the options of a contestant. Raises InvalidRequest for values that are no sizes."""
    if PAD in options and BUCKET in options:
        raise InvalidRequest(f"{PAD}= and {BUCKET}= both say what is padded to; give one", code="E_CONTESTANT")
    if PAD in options:
        return Padding(multiple=_size(PAD, options[PAD], f"{PAD}=64"))
    if BUCKET in options:
        example = f"{BUCKET}=32+64+128"
        return Padding(buckets=tuple(sorted({_size(BUCKET, each, example) for each in options[BUCKET].split("+")})))
    return None


def _size(option: str, text: str, example: str) -> int:
    found = int(text) if re.fullmatch(rf"\s*\d{{1,{_MOST_DIGITS}}}\s*", text, re.ASCII) else 0
    if found < 1:
        raise InvalidRequest(
            f"{option}= takes whole numbers from 1 on, such as {example} (got {text})", code="E_CONTESTANT"
        )
    return found
