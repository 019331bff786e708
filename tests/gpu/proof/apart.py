"""A program in a process of its own that tells figures as lines of JSON, each kept as it comes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from .places import ROOT
from .record import NotHere, described, plain

_ABSENT = "absent"


class Failed(Exception):
    """The process ended badly, or ran out of time."""


def told_apart(
    module: str,
    *arguments: str,
    limit_s: float,
    each: Callable[[dict[str, Any]], None],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a module and hand over every object that it prints on a line. One key ``absent`` says it cannot run here."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    too_long = threading.Event()

    def stop() -> None:
        too_long.set()
        process.kill()

    watch = threading.Timer(limit_s, stop)
    watch.start()
    last, absent = "it said nothing", ""
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            told = _object_on(line)
            if told is None:
                last = line.strip() or last
            elif _ABSENT in told:
                absent = str(told[_ABSENT])
            else:
                each(told)
        status = process.wait()
    finally:
        watch.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    if absent:
        raise NotHere(absent)
    if too_long.is_set():
        raise Failed(f"it was ended after {limit_s:.0f} s")
    if status != 0:
        raise Failed(f"exit status {status}: {last[:300]}")


def tell(**figures: Any) -> None:
    """On the side of the process."""
    print(json.dumps(plain(figures)), flush=True)


def told_on_this_side(work: Callable[[], None]) -> None:
    """What cannot run here says so in place of figures; whatever else fails says what it was on its last line."""
    try:
        work()
    except NotHere as absent:
        print(json.dumps({_ABSENT: str(absent)}), flush=True)
    except Exception as error:
        print(described(error), file=sys.stderr)
        raise


def _object_on(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
