"""The published lists of operations, and the operations that a pattern selects.

DeepBench (Baidu Research, https://github.com/baidu-research/DeepBench) lists matrix products, convolutions and
recurrent layers of training, of inference on servers and of inference on devices. Where a list has the same sizes
twice, they are here once. Its recurrent layers leave out the products of the inputs; frameworks offer no layer without
them, so here they are part of the work. The embedding tables are those of language models, with the numbers of tokens
that they look up: BERT base and large, GPT-2 small and XL, and Llama 2 7B. Operations that test numerical stability
are listed by their names.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.models.operations.kinds import Convolution, Embedding, Gemm, Gru, Lstm, Rnn, operation_named
from fairlap.models.operations.operation import Operation

CODE = "E_OPERATION"
_FILES: tuple[tuple[str, type[Operation]], ...] = (
    ("gemm", Gemm),
    ("convolution", Convolution),
    ("rnn", Rnn),
    ("lstm", Lstm),
    ("gru", Gru),
    ("embedding", Embedding),
)
_WILD = frozenset("*?[")
_MOST_NEAR = 3
_SHAPES = Path(__file__).parent / "shapes"


@dataclass(frozen=True)
class Listed:
    operation: Operation
    lists: tuple[str, ...]

    def matches(self, pattern: str) -> bool:
        """``conv-*``, or with the list, ``deepbench-device/conv-*``."""
        name = self.operation.name
        return fnmatchcase(name, pattern) or any(fnmatchcase(f"{each}/{name}", pattern) for each in self.lists)


@cache
def listed_operations() -> tuple[Listed, ...]:
    """In the order of the lists."""
    by_sizes = [each for stem, kind in _FILES for each in _read(_SHAPES / f"{stem}.csv", kind)]
    return (*by_sizes, *_read_names(_SHAPES / "names.csv"))


def is_pattern(text: str) -> bool:
    """Whether a text selects operations of the lists: it has a wildcard, or begins with a list and a slash."""
    return bool(_WILD & set(text)) or ("/" in text and text.partition("/")[0] in _lists())


def operations_matching(pattern: str) -> list[Listed]:
    """At least one."""
    found = [each for each in listed_operations() if each.matches(pattern)]
    if not found:
        near = nearest_names(pattern.rpartition("/")[2])
        hint = f"did you mean {', '.join(near)}?" if near else "`fairlap list operations` lists them"
        raise InvalidRequest(f"no operation matches {pattern!r}; {hint}", code=CODE)
    return found


def nearest_names(text: str) -> Sequence[str]:
    """Of the lists: names, or a pattern, that someone who wrote this may have meant."""
    plain = "".join(letter for letter in text if letter not in _WILD)
    names = [each.operation.name for each in listed_operations()]
    begins = [name for name in names if plain and name.startswith(plain)]
    near = begins[:_MOST_NEAR] or get_close_matches(plain, names, n=_MOST_NEAR, cutoff=0.75)
    kinds = {each.operation.kind for each in listed_operations()}
    return near or [f"{kind}-*" for kind in get_close_matches(plain.partition("-")[0], kinds, n=1, cutoff=0.7)]


def _lists() -> frozenset[str]:
    return frozenset(name for each in listed_operations() for name in each.lists)


def _read(file: Path, kind: type[Operation]) -> list[Listed]:
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [Listed(_of_row(kind, row), tuple(row["lists"].split())) for row in rows]


def _read_names(file: Path) -> list[Listed]:
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    found = [(operation_named(row["name"]), tuple(row["lists"].split())) for row in rows]
    return [Listed(operation, lists) for operation, lists in found if operation is not None]


def _of_row(kind: type[Operation], row: dict[str, str]) -> Operation:
    sizes = {name: int(text) for name, text in row.items() if name != "lists"}
    flags = {name: bool(size) for name, size in sizes.items() if name.endswith("_transposed")}
    return kind(**{**sizes, **flags})
