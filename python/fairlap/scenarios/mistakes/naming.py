"""What an error names: the user's line, the sides that contradict each other, the operator, the part of the model.

Fixed rules, read by program. Texts of the message are looked through without what says where in the code it was raised,
whose numbers would pass for sizes; only the user's line is looked for in all that is printed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from fairlap.scenarios.mistakes.catalogue import Shape, Side

_PLACES = re.compile(r'File ".*?", line \d+|[\w./-]+\.(?:py|cc|cpp|h|hpp):\d+(?::\d+)?|\bline \d+|0x[0-9a-fA-F]+')
_OPEN, _CLOSE = r"[\[({]\s*", r"\s*,?\s*[\])}]"


def names_line(printed: str, file: str, lines: Collection[int]) -> bool:
    """Whether one of the lines of the file is named, as Python's tracebacks name it or as ``file:line``."""
    name = re.escape(Path(file).name)
    found = re.findall(rf'{name}"?, line (\d+)\b|{name}:(\d+)\b', printed)
    return any(int(number) in lines for pair in found for number in pair if number)


def sides_named(message: str, sides: Sequence[Side]) -> int:
    """Count the sides that are named, each whole: a shape with all its sizes."""
    text = _without_places(message)
    return sum(_names_side(text, side) for side in sides)


def names_sizes(message: str, sizes: Sequence[int]) -> bool:
    """Whether each size is named, on its own or within a shape."""
    text = _without_places(message)
    return bool(sizes) and all(re.search(rf"(?<![\d.]){size}(?!\.?\d)", text) for size in sizes)


def names_any(message: str, words: Sequence[str]) -> bool:
    """Whether one of the words is named, as a word or as part of a name in CamelCase or with underscores."""
    text = _without_places(message)
    return any(_has_word(text, word) for word in words)


def _without_places(message: str) -> str:
    return _PLACES.sub(" ", message)


def _names_side(text: str, side: Side) -> bool:
    if isinstance(side, str):
        return any(_has_word(text, word) for word in side.split("|"))
    if all(isinstance(each, int) for each in side):
        return _has_shape(text, tuple(int(each) for each in side))  # type: ignore[arg-type]
    return any(_names_side(text, each) for each in side)  # type: ignore[arg-type]


def _has_shape(text: str, shape: Shape) -> bool:
    """Find ``(4, 17)``, ``[4,17]``, ``{4,17}`` or ``4x17``; one size alone only as in ``(19,)`` or ``[19]``."""
    if len(shape) == 1:
        return re.search(rf"\(\s*{shape[0]}\s*,\s*\)|[\[{{]\s*{shape[0]}\s*,?\s*[\]}}]", text) is not None
    sizes = r"\s*,\s*".join(map(str, shape))
    if re.search(_OPEN + sizes + _CLOSE, text):
        return True
    return re.search(r"(?<![\w.])" + "x".join(map(str, shape)) + r"(?![\w.])", text) is not None


def _has_word(text: str, word: str) -> bool:
    if word.isdigit():  # or as a literal of C++
        return re.search(rf"(?<![\w.]){word}L?(?!\w|\.\d)", text) is not None
    return any(_stands_alone(text, *found.span()) for found in re.finditer(re.escape(word), text, re.IGNORECASE))


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether it is a word, or one of a name in CamelCase: MatMul in BatchMatMulV2, float in FloatTensor."""
    before, first, last, after = text[start - 1 : start], text[start], text[end - 1], text[end : end + 1]
    begins = not before.isalpha() or (before.islower() and first.isupper())
    return begins and (not after.isalpha() or (last.islower() and after.isupper()))
