"""TOML files that people write: read into a type; what is wrong with them is said by line and key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import inspect

from fairlap.errors import InvalidRequest

Read = TypeVar("Read")
Key = tuple[str | int, ...]

_PLACE = re.compile(r"\s+- at `\$(?P<path>.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")
_MOST_BYTES = 1_000_000
_NO_SUCH_NAME = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_WRONG_FORM = re.compile(r"Expected `str` matching regex ")
_LACKING = re.compile(r"object missing required field `(.+)`")
_QUOTED_TYPES = re.compile(r"`((?:\w+ \| )*\w+)`")
_TYPES = {
    "object": "a table",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}


class TomlFile:
    """One file's text with its place: what is said of it names the file, the line and the key."""

    def __init__(self, path: Path, what: str) -> None:
        """``what`` names the kind of file in messages: a plan, a table of prices."""
        self.path = path
        self._what = what
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise InvalidRequest(f"{path} is too large for {what}")
            self.text = path.read_text(encoding="utf-8-sig")  # some editors of Windows begin with a mark
        except OSError as error:
            raise InvalidRequest(f"{what}, {path}, cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"{path} is not {what}: it is not UTF-8 text ({error.reason})") from None

    def read(self, kind: type[Read]) -> Read:
        try:
            return msgspec.convert(tomllib.loads(self.text), type=kind)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidRequest(f"{self.path}{_line_in(str(error))}: this is not TOML: {error}") from None
        except msgspec.ValidationError as error:
            raise self._refusal(str(error), kind) from None

    def wrong(self, key: Key, why: str) -> InvalidRequest:
        """An error that names the key and its line."""
        line = line_of(self.text, key)
        where = f"{self.path}, line {line}" if line else str(self.path)
        return InvalidRequest(f"{where}: {dotted(key)}: {why}" if key else f"{where}: {why}")

    def _refusal(self, message: str, kind: type) -> InvalidRequest:
        """msgspec says the place as ``$.outputs.csv``."""
        place = _PLACE.search(message)
        key = _key_of(place["path"]) if place else ()
        why = message[: place.start()] if place else message
        unknown = _UNKNOWN.fullmatch(why)
        if unknown is None:
            return self.wrong(key, _what_may_stand(why, _type_at(inspect.type_info(kind), key)))
        name = unknown["name"]
        known = _fields_at(inspect.type_info(kind), key)
        near = difflib.get_close_matches(name, known, n=1)
        told = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        return self.wrong((*key, name), f"there is no such key; {told}")


def _what_may_stand(why: str, kind: inspect.Type) -> str:
    """Of a name that is not among those allowed, all that are; of a text without the right form, the form in words."""
    if wrong := _NO_SUCH_NAME.fullmatch(why):
        return f"there is no {wrong[1]}; there are {', '.join(_names_in(kind))}"
    form = _described(kind).rstrip(".")
    if form and _WRONG_FORM.match(why):
        return f"expected {form[:1].lower()}{form[1:]}"
    return _in_words_of_toml(why[:1].lower() + why[1:])


def _described(kind: inspect.Type) -> str:
    schema = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return str((schema or {}).get("description", ""))


def _names_in(kind: inspect.Type) -> list[str]:
    if isinstance(kind, inspect.Metadata):
        return _names_in(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [name for each in kind.types for name in _names_in(each)]
    return [str(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []


def _in_words_of_toml(why: str) -> str:
    """msgspec speaks of JSON: expected `int | array | null`."""

    def told(types: re.Match[str]) -> str:
        return " or ".join(_TYPES.get(each, each) for each in types[1].split(" | ") if each != "null")

    return _QUOTED_TYPES.sub(told, _LACKING.sub(r"\1 is missing", why))


def dotted(key: Key) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key)
    return text.removeprefix(".")


def line_of(text: str, key: Key) -> int | None:
    """Where the statement begins that gives the key, or what holds it; None when nothing does."""
    while key:
        for line, given in _statements(text):
            if given[: len(key)] == key:
                return line
        key = key[:-1]
    return None


def _statements(text: str) -> Iterator[tuple[int, Key]]:
    """Every statement's first line and each key that it gives. The parser itself says where a statement ends."""
    table: Key = ()
    tables_so_far: dict[Key, int] = {}
    began, held = 1, ""
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not held:
            began = number
        held += line
        try:
            given = tomllib.loads(held)
        except tomllib.TOMLDecodeError:
            continue  # it goes on in the next line
        if held.lstrip().startswith("["):
            table = _header_of(given, tables_so_far)
            yield began, table
        else:
            for key in _keys_in(given):
                yield began, (*table, *key)
        held = ""


def _header_of(given: dict[str, object], tables_so_far: dict[Key, int]) -> Key:
    """``[a.b]`` parses to nested tables, ``[[a]]`` to a list of one."""
    key: Key = ()
    inside: object = given
    while isinstance(inside, dict) and inside:
        [(name, inside)] = inside.items()
        key = (*key, name)
    if isinstance(inside, list):
        number = tables_so_far.get(key, 0)
        tables_so_far[key] = number + 1
        return (*key, number)
    return key


def _keys_in(given: dict[str, object], before: Key = ()) -> Iterator[Key]:
    for name, value in given.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from _keys_in(value, (*before, name))


def _key_of(path: str) -> Key:
    return tuple(name or int(number) for name, number in _STEP.findall(path))


def _line_in(message: str) -> str:
    found = _AT_LINE.search(message)
    return f", line {found[1]}" if found and found[1] else ""


def _fields_at(kind: inspect.Type, key: Key) -> list[str]:
    """What may stand where the key leads."""
    found = _type_at(kind, key)
    while isinstance(found, inspect.Metadata):
        found = found.type
    return [field.encode_name for field in found.fields] if isinstance(found, inspect.StructType) else []


def _type_at(kind: inspect.Type, key: Key) -> inspect.Type:
    for step in key:
        kind = _type_in(kind, step)
    return kind


def _type_in(kind: inspect.Type, step: str | int) -> inspect.Type:
    if isinstance(kind, inspect.Metadata):
        return _type_in(kind.type, step)
    if isinstance(kind, inspect.UnionType):  # of a list and something else
        return next((_type_in(each, step) for each in kind.types if isinstance(each, inspect.CollectionType)), kind)
    if isinstance(kind, inspect.StructType):
        return next(field.type for field in kind.fields if field.encode_name == step)
    return kind.item_type if isinstance(kind, inspect.CollectionType) else kind
