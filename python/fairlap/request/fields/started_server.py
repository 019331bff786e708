"""Servers that fairlap starts: ``serve:transformers==5.24.0:model=./m``, or any as ``serve:command="./server {port}"``.

Their options may be separated by commas too. What stands in double quotes is one value, whatever is in it.
"""

from __future__ import annotations

import re

from fairlap.errors import InvalidRequest
from fairlap.request.fields.package_origin import E_CONTESTANT, FIND_LINKS, INDEX, PYTHON, WITH

SERVE = "serve"
"""The framework of a server that fairlap starts; its variant is the server's name, or empty for a command line."""

MODEL, API, KEY_FROM, TIMEOUT = "model", "api", "key_from", "timeout"
COMMAND_LINE, ADDRESS, HEALTH, READY_WITHIN = "command", "url", "health", "ready_within"
DEVICE, MORE, RESTARTS = "device", "args", "restarts"

OF_ANY_SERVER = (MODEL, API, KEY_FROM, TIMEOUT)
OF_STARTED = (COMMAND_LINE, ADDRESS, HEALTH, READY_WITHIN, DEVICE, MORE, RESTARTS, WITH, PYTHON, INDEX, FIND_LINKS)
OPTIONS = (*OF_ANY_SERVER, *OF_STARTED)

_NAMES = "|".join(OPTIONS)
_OUTSIDE_QUOTES = r'(?=(?:[^"]*"[^"]*")*[^"]*$)'
_AT_AN_OPTION = re.compile(rf"\s*[:,]\s*(?=(?:{_NAMES})=){_OUTSIDE_QUOTES}")
_AN_OPTION = re.compile(rf"\s*(?:{_NAMES})=")
_NAMED = re.compile(r"(?P<name>[a-z][a-z0-9_.-]*)\s*(?P<version>==\s*[^:,\s]+)?")


def is_started(text: str) -> bool:
    return text.lstrip().startswith(f"{SERVE}:")


def goes_on(text: str, part: str) -> bool:
    """Whether a part of a list after a comma belongs to the contestant before it: an option, or within quotes."""
    return is_started(text) and (text.count('"') % 2 == 1 or _AN_OPTION.match(part) is not None)


def parts_of_started(text: str) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """Split into the server's name, its version and its options."""
    first, *others = _AT_AN_OPTION.split(text.partition(":")[2].strip())
    parts = [first, *others] if _AN_OPTION.match(first) else others
    named = None if first in parts else _NAMED.fullmatch(first)
    if named is None and first not in parts:
        raise InvalidRequest(
            f"{text!r} is not a server to start; write {SERVE}:transformers:model=./FOLDER, or "
            f'{SERVE}:command="PROGRAM --port {{port}}". Its options are {", ".join(OPTIONS)}',
            code=E_CONTESTANT,
        )
    options = tuple(_option(each, text) for each in parts)
    names = [name for name, _ in options]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise InvalidRequest(f"{text!r} has {twice}= twice", code=E_CONTESTANT)
    if named is None:
        return "", "", options
    return named["name"], re.sub(r"\s", "", named["version"] or ""), options


def _option(part: str, text: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == '"' and '"' not in value[1:-1]:
        value = value[1:-1].strip()
    if not value:
        raise InvalidRequest(f"{text!r}: {name.strip()}= has no value", code=E_CONTESTANT)
    return name.strip(), value
