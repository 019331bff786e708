"""A final answer as it is compared: its floating-point numbers as numbers, and everything else as text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.errors import shortened
from fairlap.models.arrays import Arrays

_MOST_SHOWN = 32  # numbers of an array; of a larger one the hash is compared
_DEEPEST = 32
_SPREAD = 4.0  # times the moves that were tried, since a right answer may lie a little beyond them
_ROUNDING = 1e-6  # of a number, which code in float32 may round away
_NUMBER = "~"  # stands in the text for a floating-point number
_NUMBERS, _REST = "answer/numbers", "answer/rest"


@dataclass(frozen=True)
class AnswerValue:
    text: str
    numbers: npt.NDArray[np.float64]  # in the order of their places in the text
    unknown: tuple[str, ...] = ()  # types of parts that are not compared


@dataclass(frozen=True)
class ExpectedAnswer:
    """What the reference's outputs become. ``on_edge``: rounding alone would change more than its numbers."""

    value: AnswerValue
    allowed: npt.NDArray[np.float64]  # how far each number may be off
    on_edge: bool = False


class _Rest(msgspec.Struct, frozen=True):
    text: str
    unknown: tuple[str, ...]


def value_of(answer: object) -> AnswerValue:
    """Read arrays, numbers, texts, and lists and mappings of these, as NumPy, PyTorch and others have them."""
    walk = _Walk()
    walk.add(answer, 0)
    numbers = np.concatenate(walk.numbers) if walk.numbers else np.zeros(0)
    return AnswerValue("".join(walk.text), numbers, tuple(dict.fromkeys(walk.unknown)))


def same(one: AnswerValue, other: AnswerValue) -> bool:
    return one.text == other.text and np.array_equal(one.numbers, other.numbers, equal_nan=True)


def expected_answer(first: AnswerValue, moved: Sequence[AnswerValue | None]) -> ExpectedAnswer:
    """Allow what rounding may do. ``moved`` are answers to outputs that are off by as much as they may be, or None."""
    alike = [each for each in moved if each is not None and each.text == first.text]
    spread = np.zeros(len(first.numbers))
    for each in alike:
        with np.errstate(invalid="ignore"):
            spread = np.fmax(spread, np.abs(each.numbers - first.numbers))
    allowed = _SPREAD * spread + _ROUNDING * np.abs(first.numbers)
    return ExpectedAnswer(first, allowed, on_edge=len(alike) < len(moved))


def why_wrong(got: AnswerValue, expected: ExpectedAnswer) -> str:
    """Empty for a right answer, and for one that rounding decides."""
    wanted = expected.value
    if expected.on_edge:
        return ""
    if got.text != wanted.text:
        return f"it is {_shown(got)} in place of {_shown(wanted)}"
    with np.errstate(invalid="ignore"):
        off = np.abs(got.numbers - wanted.numbers)
    equal = (got.numbers == wanted.numbers) | (np.isnan(got.numbers) & np.isnan(wanted.numbers))
    wrong = np.flatnonzero(~(equal | (off <= expected.allowed)))
    if not len(wrong):
        return ""
    worst = wrong[np.argmax(np.nan_to_num(off[wrong], nan=np.inf))]
    return (
        f"{len(wrong):,} of its {len(off):,} numbers are off by more than allowed, one is {got.numbers[worst]:.6g} in "
        f"place of {wanted.numbers[worst]:.6g}"
    )


def as_arrays(value: AnswerValue) -> dict[str, np.ndarray]:
    """As a file of arrays holds it."""
    rest = msgspec.json.encode(_Rest(value.text, value.unknown))
    return {_NUMBERS: np.append(value.numbers, 0.0), _REST: np.frombuffer(rest, np.uint8)}  # neither is empty


def from_arrays(arrays: Arrays) -> AnswerValue:
    rest = msgspec.json.decode(np.asarray(arrays[_REST]).tobytes(), type=_Rest)
    return AnswerValue(rest.text, np.array(arrays[_NUMBERS][:-1]), rest.unknown)


def _shown(value: AnswerValue) -> str:
    numbers = iter(value.numbers)
    parts = value.text.split(_NUMBER)
    if len(parts) - 1 != len(value.numbers) or len(value.numbers) > _MOST_SHOWN:
        return shortened(value.text, 80)
    return shortened("".join(part + f"{next(numbers):.6g}" for part in parts[:-1]) + parts[-1], 80)


class _Walk:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.numbers: list[npt.NDArray[np.float64]] = []
        self.unknown: list[str] = []

    def add(self, value: Any, depth: int) -> None:
        if depth > _DEEPEST:
            self._unknown(value)
        elif value is None or isinstance(value, bool | int | str | bytes | np.bool_ | np.integer):
            self.text.append(repr(value.item() if isinstance(value, np.generic) else value).replace(_NUMBER, "\\x7e"))
        elif isinstance(value, float | np.floating):
            self._number(np.array([value], np.float64), "")
        elif isinstance(value, complex | np.complexfloating):
            self._number(np.array([value.real, value.imag], np.float64), "complex")
        elif isinstance(value, Mapping):
            self._several("{}", [(f"{key!r}: ", each) for key, each in sorted(value.items(), key=_by_key)], depth)
        elif isinstance(value, list | tuple):
            self._several("[]", [("", each) for each in value], depth)
        elif isinstance(value, set | frozenset):
            self._several("{}", [("", each) for each in sorted(value, key=repr)], depth)
        elif is_dataclass(value) and not isinstance(value, type):
            self._several("{}", [(f"{name}: ", each) for name, each in asdict(value).items()], depth)
        else:
            self._array(value, depth)

    def _several(self, brackets: str, parts: Sequence[tuple[str, Any]], depth: int) -> None:
        self.text.append(brackets[0])
        for number, (name, each) in enumerate(parts):
            self.text.append(f"{', ' if number else ''}{name}".replace(_NUMBER, "\\x7e"))
            self.add(each, depth + 1)
        self.text.append(brackets[1])

    def _array(self, value: Any, depth: int) -> None:
        array = _array_of(value)
        if array is None:
            self._unknown(value)
        elif array.dtype.kind == "f":
            self._number(array.astype(np.float64).reshape(-1), str(list(array.shape)) if array.ndim else "")
        elif array.dtype.kind == "c":
            parts = np.stack([array.real, array.imag]).astype(np.float64)
            self._number(parts.reshape(-1), f"complex{list(array.shape)}")
        elif array.dtype.kind in "biu" and array.size > _MOST_SHOWN:
            digest = hashlib.sha256(np.ascontiguousarray(array, np.int64).tobytes()).hexdigest()[:16]
            self.text.append(f"{list(array.shape)} of whole numbers ({digest})")
        elif array.dtype.kind in "biuUS":
            self.add(array.tolist(), depth + 1)
        else:
            self._unknown(value)

    def _number(self, numbers: npt.NDArray[np.float64], shape: str) -> None:
        self.numbers.append(numbers)
        self.text.append(f"{shape}{_NUMBER}" if shape else _NUMBER)

    def _unknown(self, value: Any) -> None:
        name = type(value).__qualname__
        self.unknown.append(name)
        self.text.append(f"<{name}>")


def _by_key(pair: tuple[Any, Any]) -> str:
    return repr(pair[0])


def _array_of(value: Any) -> np.ndarray | None:
    """None for what does not become an array of numbers or texts, such as a generator."""
    if not isinstance(value, np.ndarray) and not hasattr(value, "__array__"):
        return None
    try:
        return np.asarray(value)
    except Exception:  # of somebody else's type
        return None
