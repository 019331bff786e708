"""Contestants that are servers for fairlap to start: the tests' own program, which goes wrong on request."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

from fairlap.machine.programs.processes import lives
from fairlap.results.results import Results
from fairlap.results.row import Row

PROGRAM = Path(__file__).with_name("planted_server.py")
HOW: dict[str, Any] = {"rate": 100.0, "trial": 0.1}
"""They are raced."""
LAST_WORDS, STATUS = "no such model here", 3  # of the program where it dies


def planted(*options: object, more: str = "") -> str:
    """Name a contestant; ``more`` are options of the contestant itself."""
    words = [sys.executable, "-I", str(PROGRAM), "--port", "{port}", *map(str, options)]
    return f'serve:command="{shlex.join(words)}":model=m{more}'


def row_named(found: Results, name: str) -> Row:
    return next(each for each in found.rows if each.contestant == name)


def pids_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


def are_gone(pids: list[int], within_s: float = 60.0) -> bool:
    deadline_s = time.monotonic() + within_s
    while any(map(lives, pids)):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True
