"""The size on disk of installed packages, with those that they need, as their installers recorded it.

Files that Python compiles later have no recorded size and do not count.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError

from fairlap.machine.software import package_of

_OF_AN_EXTRA = re.compile(r";.*\bextra\s*==")


def installed_bytes(requirements: Iterable[str]) -> int:
    """Sum up the named packages and all that they need; 0 where none of the named ones is installed."""
    return sum(_size_of(name) for name in _with_needed(map(package_of, requirements)))


def _with_needed(names: Iterable[str]) -> set[str]:
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found and (own := _needs(name)) is not None:
            found.add(name)
            waiting += own
    return found


@cache
def _needs(name: str) -> tuple[str, ...] | None:
    """Name what is required without an extra; None where it is not installed."""
    try:
        required = Distribution.from_name(name).requires or ()
    except (PackageNotFoundError, ValueError):  # or it has no name
        return None
    return tuple(package_of(each) for each in required if not _OF_AN_EXTRA.search(each))


@cache
def _size_of(name: str) -> int:
    record = Distribution.from_name(name).read_text("RECORD") or ""
    sizes = (row[2] for row in csv.reader(record.splitlines()) if len(row) == 3)
    return sum(int(size) for size in sizes if size.isdecimal())
