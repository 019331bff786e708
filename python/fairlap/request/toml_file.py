"""What people write, in TOML files and as arguments in Python, read into a type.

An error names the file, if there is one, and the key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from fairlap.errors import InvalidRequest, shown
from fairlap.machine.files.regular_file import content_of
from fairlap.suggestions import not_one_of

Read = TypeVar("Read")

_MOST_BYTES = 1_000_000
# tomllib takes time that grows with the square of their number.
_PART_OF_KEY = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.){0,1000}\"|'[^'\n]{0,1000}')"
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART_OF_KEY}[ \t]{{0,99}}\.[ \t]{{0,99}}){{100}}")
_LONGEST_KEY = 40  # that could be a misspelt one
_PLACE = re.compile(r"\s+- at (?:`key` in )?`\$\.?(.*)`$")
_STEP = re.compile(r"(\[\.\.\.\]|[^.\[\]]+)")  # [...] where a table's own names are keys
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_WRONG_KEY = re.compile(r"Object (contains unknown|missing required) field")
_UNKNOWN_NAME = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_QUOTED_TYPES = re.compile(r"`((?:[\w.]+ \| )*[\w.]+)`")
_TYPES = {
    "object": "a table",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
_TYPES_OF_PYTHON = {**_TYPES, "object": "a mapping", "str": "a text", "null": "None", "numpy.ndarray": "an array"}


def read_toml(path: Path, kind: type[Read], what: str) -> Read:
    """Read a TOML file, which messages call ``what``; a type that TOML lacks is called with the given value."""
    return converted(path, parsed_toml(path, what), kind)


def parsed_toml(path: Path, what: str) -> dict[str, Any]:
    """Parse a TOML file, of which nothing else is known."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidRequest(f"{path} is too large for {what}", code="E_TOML")
        text = content_of(path).decode("utf-8-sig")  # some editors of Windows begin with a mark
        if _LONG_KEY.search(text):
            raise InvalidRequest(f"{path}: not valid TOML: a key of over a hundred parts", code="E_TOML")
        return tomllib.loads(text)
    except OSError as error:
        raise InvalidRequest(f"cannot read {what} {path}: {error.strerror}", code="E_TOML") from None
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path}: not valid UTF-8", code="E_TOML") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidRequest(f"{path}: not valid TOML: {error}", code="E_TOML") from None


def converted(path: Path, values: dict[str, Any], kind: type[Read]) -> Read:
    """Check what was parsed, and convert it."""
    try:
        return msgspec.convert(values, kind, dec_hook=called)
    except RecursionError as error:
        raise InvalidRequest(f"{path}: not valid TOML: {error}", code="E_TOML") from None
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{path}: {_explained(str(error), kind, _TYPES)}", code=_code_of(error)) from None


def from_python(values: Mapping[str, Any], kind: type[Read], code: str = "") -> Read:
    """Check and convert arguments of a function; ``code`` is used for refusals that have none."""
    for name, value in values.items():
        if "\0" in (value if isinstance(value, str) else ""):
            raise InvalidRequest(f"{name} must be a text without a zero byte, not {shown(value)}", code=code)
    try:
        return msgspec.convert(values, kind, dec_hook=called)
    except msgspec.ValidationError as error:
        of_value = _code_of(error)
        message = _explained(str(error), kind, _TYPES_OF_PYTHON)
        raise InvalidRequest(message, code=code if of_value in (InvalidRequest.code, "E_TOML") else of_value) from None


def _code_of(error: msgspec.ValidationError) -> str:
    """Give a value that is not accepted the code that it would have on the command line."""
    if isinstance(error.__cause__, InvalidRequest):
        return error.__cause__.code
    return "E_TOML" if _WRONG_KEY.match(str(error)) else InvalidRequest.code


def called(kind: type, value: object) -> Any:
    if not isinstance(value, str | int | float | list) or isinstance(value, bool):
        raise InvalidRequest(f"unexpected {type(value).__name__}")
    try:
        return kind(value)
    except TypeError:
        raise InvalidRequest(f"unexpected {type(value).__name__}") from None


def _explained(message: str, kind: type, words: Mapping[str, str]) -> str:
    """msgspec gives the place as ``$.models[1]`` and types in the words of JSON."""
    place = _PLACE.search(message)
    key = place[1] if place else ""
    reason = message[: place.start()] if place else message
    found = _type_at(inspect.type_info(kind), key)
    if unknown := _UNKNOWN_KEY.fullmatch(reason):
        known = _keys_in(found)
        near = _nearest(unknown[1], known)
        hint = f"did you mean {near}?" if near else f"known keys: {', '.join(known)}"
        return f"unknown key {f'{key}.' if key else ''}{unknown[1]}; {hint}"
    if wrong := _UNKNOWN_NAME.fullmatch(reason):
        reason = not_one_of(wrong[1].strip("'"), dict.fromkeys(_names_in(found)))
    elif "object missing required field" in reason.lower():
        return f"{f'{key}.' if key else ''}{reason.split('`')[1]} is missing"
    reason = _QUOTED_TYPES.sub(partial(_in_words, words), reason[:1].lower() + reason[1:])
    return f"{key}: {reason}" if key else reason


def _nearest(key: str, known: Sequence[str]) -> str:
    """Choose the key that takes the fewest slips of the fingers to become this one; empty where it takes too many."""
    if len(key) > _LONGEST_KEY:
        return ""
    slips = {each: min(_slips(key, each), _slips(key, each.removesuffix("s"))) for each in known}
    best = min(known, key=lambda each: slips[each], default="")
    return best if best and slips[best] <= max(1.0, len(key) / 3) else ""


def _slips(written: str, meant: str) -> float:
    """Edit distance after Damerau and Levenshtein; a swap of neighbours, the commonest slip, counts half."""
    rows = [[float(max(i, j)) for j in range(len(meant) + 1)] for i in range(len(written) + 1)]
    for i, one in enumerate(written, 1):
        for j, other in enumerate(meant, 1):
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (one != other))
            if i > 1 and j > 1 and one != other and written[i - 2 : i] == meant[j - 2 : j][::-1]:
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 0.5)
    return rows[-1][-1]


def _in_words(words: Mapping[str, str], types: re.Match[str]) -> str:
    """TOML has no null, so that no value of a file can be one."""
    named = types[1].split(" | ")
    return " or ".join(words.get(each, each) for each in named if each in words or each != "null")


def _type_at(kind: inspect.Type, key: str) -> inspect.Type:
    kind = _plain(kind)
    for step in _STEP.findall(key):
        if isinstance(kind, inspect.UnionType):  # a list or a single value
            kind = next((each for each in kind.types if isinstance(each, inspect.CollectionType)), kind)
        if isinstance(kind, inspect.StructType):
            kind = _plain(next(field.type for field in kind.fields if field.encode_name == step))
        elif isinstance(kind, inspect.DictType):
            kind = _plain(kind.value_type)
        elif isinstance(kind, inspect.CollectionType | inspect.VarTupleType):
            kind = _plain(kind.item_type)
    return kind


def _keys_in(kind: inspect.Type) -> list[str]:
    if isinstance(kind, inspect.UnionType):  # a table or a single value
        return [key for each in kind.types for key in _keys_in(each)]
    return [field.encode_name for field in kind.fields] if isinstance(kind, inspect.StructType) else []


def _plain(kind: inspect.Type) -> inspect.Type:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _names_in(kind: inspect.Type) -> list[str]:
    if isinstance(kind, inspect.UnionType):
        return [name for each in kind.types for name in _names_in(each)]
    if isinstance(kind, inspect.CollectionType | inspect.VarTupleType):
        return _names_in(_plain(kind.item_type))
    return [str(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []
