"""Recorded traffic of language models: when requests came, and how long they and their answers were.

Mooncake's traces are lines of JSON: ``timestamp`` in milliseconds, ``input_length`` and ``output_length`` in tokens,
and ``hash_ids``, one for every 512 tokens of the input, of all of it up to there: requests with the same first ids
begin alike (Qin et al., "Mooncake", FAST 2025). Azure's are tables of ``TIMESTAMP,ContextTokens,GeneratedTokens``
(Patel et al., "Splitwise", ISCA 2024). Neither has texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.scenarios.streams.prompts import E_PROMPTS, MOST_TOKENS, numbered_lines

BLOCK_TOKENS = 512
_TABLE = ".csv"
_COLUMNS = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]
_MOST_INPUT = 2_000_000
_BEGINNING_BYTES = 2**20
_ROUNDING = 1e-9
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?")

Times = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
_Tokens = Annotated[int, msgspec.Meta(ge=1, le=_MOST_INPUT)]


class _Line(msgspec.Struct, frozen=True):
    input_length: _Tokens
    output_length: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
    timestamp: Annotated[float, msgspec.Meta(ge=0, le=1e15)] | None = None  # milliseconds
    hash_ids: tuple[Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)], ...] = ()


@dataclass(frozen=True)
class Trace:
    """In order of time. ``at_s`` is None where only lengths were recorded."""

    at_s: Times | None  # from 0
    input_tokens: Counts
    output_tokens: Counts
    blocks: tuple[tuple[int, ...], ...]  # of each input; empty where what requests have in common was not recorded

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def length_s(self) -> float:
        """Up to when the next request would come on average; 0 where all came at once."""
        if self.at_s is None or len(self) < 2:
            return 0.0
        return float(self.at_s[-1]) * len(self) / (len(self) - 1)

    @property
    def rate_per_s(self) -> float:
        return len(self) / self.length_s if self.length_s else math.inf

    def stretch(self, place: int, seconds: float, rate_per_s: float | None = None) -> tuple[Times, Counts]:
        """Return when requests are due, in nanoseconds, and which they are, in so many seconds of it.

        Stretches follow one another, and begin again when the trace is over. With a rate, all times are drawn out or
        pressed together, so that it is the mean one of the whole trace.
        """
        assert self.at_s is not None
        speed = 1.0 if rate_per_s is None else rate_per_s / self.rate_per_s
        span_s = min(seconds * speed, self.length_s)
        parts = max(math.floor(self.length_s / span_s + _ROUNDING), 1) if span_s else 1
        for part in (each % parts for each in range(place, place + parts)):
            end_s = (part + 1) * span_s if parts > 1 else math.inf
            chosen = np.flatnonzero((self.at_s >= part * span_s) & (self.at_s < end_s))
            if chosen.size:
                break
        return (self.at_s[chosen] - part * span_s) * (1e9 / speed), chosen


def is_trace(path: Path) -> bool:
    """Whether it is one, by its suffix and its first line; a file that cannot be read is not."""
    if path.suffix.lower() == _TABLE:
        return True
    try:
        with path.open("rb") as file:
            first = next((line for line in file.read(_BEGINNING_BYTES).splitlines() if line.strip()), b"")
        return "input_length" in msgspec.json.decode(first, type=dict[str, msgspec.Raw])
    except (OSError, *NOT_THE_DOCUMENT):
        return False


def read_trace(path: Path) -> Trace:
    found = list(_rows_of_table(path) if path.suffix.lower() == _TABLE else _rows_of_lines(path))
    if not found:
        raise _refused(f"{path} has no requests")
    if len({each.timestamp is None for _, each in found}) > 1:
        raise _refused(f"{path} has a timestamp for some requests only; give one for each, or none")
    if found[0][1].timestamp is not None:
        found.sort(key=lambda each: each[1].timestamp or 0.0)
    return _trace([line for _, line in found])


def _trace(lines: Sequence[_Line]) -> Trace:
    at_s = None
    if lines[0].timestamp is not None:
        at_s = np.array([each.timestamp for each in lines], np.float64) / 1e3
        at_s -= at_s[0]
    return Trace(
        at_s,
        np.array([each.input_length for each in lines], np.int64),
        np.array([each.output_length for each in lines], np.int64),
        tuple(each.hash_ids for each in lines),
    )


def _rows_of_lines(path: Path) -> Iterator[tuple[int, _Line]]:
    decoder = msgspec.json.Decoder(_Line)
    for number, line in numbered_lines(path):
        try:
            found = decoder.decode(line)
        except NOT_THE_DOCUMENT as error:
            raise _refused(f"{path}:{number} is not a request of a trace ({error}); {_EXAMPLE}") from None
        if found.hash_ids and len(found.hash_ids) != -(-found.input_length // BLOCK_TOKENS):
            raise _refused(
                f"{path}:{number} has {len(found.hash_ids)} hash_ids for {found.input_length:,} tokens; give one for "
                f"every {BLOCK_TOKENS} tokens, or none"
            )
        yield number, found


def _rows_of_table(path: Path) -> Iterator[tuple[int, _Line]]:
    lines = numbered_lines(path)
    if next((_cells(line) for _, line in lines), []) != _COLUMNS:
        raise _refused(f"{path} does not begin with {','.join(_COLUMNS)}, as Azure's traces do")
    for number, line in lines:
        try:
            when, context, generated = _cells(line)
            row = {"timestamp": _milliseconds(when), "input_length": int(context), "output_length": int(generated)}
            yield number, msgspec.convert(row, _Line)
        except (ValueError, *NOT_THE_DOCUMENT) as error:
            raise _refused(f"{path}:{number} is not a request of Azure's traces ({error})") from None


def _cells(line: bytes) -> list[str]:
    return [each.strip() for each in line.decode("utf-8-sig", "replace").split(",")]


def _milliseconds(text: str) -> float:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not a time such as 2023-11-16 18:15:46.6805900")
    day, time, fraction, zone = found.groups()
    whole = datetime.fromisoformat(f"{day}T{time}{'+00:00' if zone in (None, 'Z') else zone}")
    return 1e3 * (whole.timestamp() + float(fraction or 0))


_EXAMPLE = 'write {"timestamp": 0, "input_length": 655, "output_length": 52, "hash_ids": [46, 47]}'


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, code=E_PROMPTS)
