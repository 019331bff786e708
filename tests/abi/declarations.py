"""Read fairlap's ABI headers: every declaration in them, or an error with the line that was not understood.

The headers are written in a narrow form on purpose, so that nothing in them can escape the comparison:

    using Name = ...;                     a type, or a function's pointer type (PFN_<function>)
    constexpr Type NAME = value;          a constant
    struct Name { ... };  union Name ...  a record

A comment on the line above may give NVIDIA's name for a declaration:

    // abi-macro: NAME     a constant that their header has as a macro
    // abi-prefix: NAME    a record declared up to the last field that is read; NAME* is the newest NAME<number>
    // abi-since: VERSION  a constant that CUDA's headers before this version lack or have with another value
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["type", "function", "constant", "record"]


@dataclass(frozen=True)
class Declaration:
    kind: Kind
    namespace: str
    name: str
    theirs: str  # NVIDIA's name
    is_prefix: bool = False
    fields: tuple[str, ...] = field(default=())
    since: int = 0  # the first CUDA version with this meaning

    @property
    def ours(self) -> str:
        return f"{self.namespace}::{self.name}"


class NotUnderstood(Exception):
    pass


_STATEMENT = re.compile(
    r"""\s*(?P<note>(?://[^\n]*\n\s*)*)
    (?: using\s+(?P<alias>\w+)\s*=\s*(?P<meaning>[^;={}]+);
      | constexpr\s+[\w:\s]+?\b(?P<constant>\w+)\s*=\s*[^;]+;
      | (?:struct|union)\s+(?P<record>\w+)\s*\{(?P<body>[^}]*)\};
    )""",
    re.VERBOSE,
)
_NOTE = re.compile(r"//\s*abi-(?P<what>macro|prefix):\s*(?P<name>\w+\*?)\s*$", re.MULTILINE)
_SINCE = re.compile(r"//\s*abi-since:\s*(\d+)\s*$", re.MULTILINE)
_FIELD = re.compile(r"\s*[\w:\s*]+?\b(?P<name>\w+)(?:\[\d+\])?;")


def read_declarations(header: Path) -> list[Declaration]:
    text = header.read_text()
    opening = re.search(r"^namespace ([\w:]+) \{\n", text, re.MULTILINE)
    closing = re.search(r"^\}  // namespace [\w:]+\n", text, re.MULTILINE)
    if opening is None or closing is None:
        raise NotUnderstood(f"{header.name} has no namespace")
    _check_outside(header, text[: opening.start()] + text[closing.end() :])

    found = []
    at = opening.end()
    while text[at : closing.start()].strip():
        statement = _STATEMENT.match(text, at, closing.start())
        if statement is None:
            rest = re.sub(r"//[^\n]*\n", "", text[at : closing.start()]).strip()
            if not rest:
                break
            raise NotUnderstood(f"{header.name}: {rest.splitlines()[0]}")
        found.append(_declaration(statement, opening.group(1)))
        at = statement.end()
    return found


def _check_outside(header: Path, text: str) -> None:
    for line in text.splitlines():
        if line and not line.startswith(("//", "#include ", "#pragma once")):
            raise NotUnderstood(f"{header.name}, outside its namespace: {line}")


def _declaration(statement: re.Match[str], namespace: str) -> Declaration:
    note = _NOTE.search(statement.group("note"))
    theirs = note.group("name") if note else None
    since = _SINCE.search(statement.group("note"))
    if name := statement.group("alias"):
        if name.startswith("PFN_"):
            return Declaration("function", namespace, name, theirs or name.removeprefix("PFN_"))
        return Declaration("type", namespace, name, theirs or name)
    if name := statement.group("constant"):
        return Declaration("constant", namespace, name, theirs or name, since=int(since.group(1)) if since else 0)
    name = statement.group("record")
    is_prefix = note is not None and note.group("what") == "prefix"
    return Declaration("record", namespace, name, theirs or name, is_prefix, _fields(statement.group("body")))


def _fields(body: str) -> tuple[str, ...]:
    names = []
    at = 0
    while body[at:].strip():
        match = _FIELD.match(body, at)
        if match is None:
            raise NotUnderstood(f"a field: {body[at:].strip().splitlines()[0]}")
        names.append(match.group("name"))
        at = match.end()
    return tuple(names)
