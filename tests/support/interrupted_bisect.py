"""A search of ``fairlap bisect`` that Ctrl-C ends after its first race, and what it kept."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
from fairlap.bisection.readings import Reading
from fairlap.bisection.saved_search import SavedSearch
from processes_seen import wait_until


def interrupt_after_a_race(process: subprocess.Popen[bytes], cache: Path, within_s: float) -> Sequence[Reading]:
    """Return the races, which are all that it keeps and prints nothing of."""
    races = wait_until(lambda: saved(cache).readings, within_s, running=process)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, b"")
    assert saved(cache).readings == races
    return races


def saved(cache: Path) -> SavedSearch:
    for file in cache.glob("bisect/*/search.json"):
        return msgspec.json.decode(file.read_bytes(), type=SavedSearch)
    return SavedSearch()
