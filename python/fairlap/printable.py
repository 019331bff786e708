r"""Text of others on its way to a terminal, a log or GitHub: names, messages, paths, what programs print.

A terminal obeys control characters: they clear the screen, rename the window, write backwards. GitHub obeys lines that
begin with ``::``. Each such character becomes its JSON escape, ``\u001b``, which people can read and which leaves the
meaning of a JSON document unchanged, so that one rule serves everything that is printed.

``OutputFilter`` sits under standard output and standard error and applies the rule to all that passes. It cannot know
which line breaks are ours, so that lines with text of others are made with ``one_line`` or ``joined_lines``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_ODD = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and newline, DEL and C1
    "\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # soft hyphen, bidi controls, invisible, separating
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # marks and tags
)
_ODD_ONE = re.compile(f"[{_ODD}]")
_OBEYED = re.compile(f"[{_ODD}]|(?<=#)#(?=\\[)")  # ##[error] is a command of GitHub wherever it is in a line
_OBEYED_IN_A_LINE = re.compile(f"[{_ODD}\t\n]|(?<=#)#(?=\\[)")
_COMMAND = re.compile(r"^([ \t]*):(?=:)", re.MULTILINE)


def visible(text: str) -> str:
    """Without a character that hides, moves or reverses what surrounds it; line breaks and tabs stay."""
    return _ODD_ONE.sub(_escape, text)


def escaped(text: str, *, at_line_start: bool = True) -> str:
    """Without what a terminal or GitHub would obey; line breaks and tabs stay."""
    text = _OBEYED.sub(_escape, text)
    if "::" not in text:
        return text
    head, newline, rest = ("", "", text) if at_line_start else text.partition("\n")
    return head + newline + _COMMAND.sub(r"\1\\u003a", rest)


def one_line(text: object) -> str:
    """Escape what a terminal obeys, line breaks included, so that the text is on one line."""
    return _OBEYED_IN_A_LINE.sub(_escape, str(text))


def joined_lines(lines: Iterable[object]) -> str:
    """Each on one line, whatever is in it."""
    return "\n".join(map(one_line, lines))


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))


class OutputFilter(io.BufferedWriter):
    """The bytes of a text stream. It sees those that ``click`` writes around the text stream, too."""

    def __init__(self, raw: io.RawIOBase, encoding: str) -> None:
        super().__init__(raw)
        self._encoding = encoding
        self._at_line_start = True

    def write(self, content: ReadableBuffer, /) -> int:
        given = bytes(content)
        text = given.decode(self._encoding, "surrogateescape")
        if text:
            clean = escaped(text, at_line_start=self._at_line_start)
            super().write(clean.encode(self._encoding, "surrogateescape"))
            self._at_line_start = text.endswith("\n")
        return len(given)


def filtered(stream: TextIO) -> TextIO:
    """Make a filtering text stream over the same file; return a stream without a file unchanged."""
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream.buffer, OutputFilter):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        OutputFilter(io.FileIO(stream.fileno(), "w", closefd=False), stream.encoding),
        stream.encoding,
        "replace" if stream.errors == "strict" else stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def unfiltered(stream: TextIO) -> TextIO:
    """For programs that draw with control characters, such as progress bars; their texts are made with ``one_line``."""
    if not isinstance(getattr(stream, "buffer", None), OutputFilter):
        return stream
    stream.flush()
    plain = io.BufferedWriter(io.FileIO(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(plain, stream.encoding, stream.errors, line_buffering=True, write_through=True)
