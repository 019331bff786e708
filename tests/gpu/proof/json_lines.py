"""Programs in separate processes that report figures as lines of JSON, each kept as it arrives."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from .machine import ROOT
from .record import NotHere, described, plain

_ABSENT, _PACKAGE = "absent", "package"


class Failed(Exception):
    """The process failed or ran out of time."""


def run_and_collect(
    module: str,
    *arguments: str,
    limit_s: float,
    each: Callable[[dict[str, Any]], None],
) -> None:
    """Run a module and pass on each JSON object that it prints; one with ``absent`` means that it cannot run here."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
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
    last = "no output"
    absent: NotHere | None = None
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            figures = _object_on(line)
            if figures is None:
                last = line.strip() or last
            elif _ABSENT in figures:
                absent = NotHere(str(figures[_ABSENT]), str(figures.get(_PACKAGE, "")))
            else:
                each(figures)
        status = process.wait()
    finally:
        watch.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    if absent is not None:
        raise absent
    if too_long.is_set():
        raise Failed(f"stopped after {limit_s:.0f} s")
    if status != 0:
        raise Failed(f"exit status {status}: {last[:300]}")


def report(**figures: Any) -> None:
    """Print one object, from within the program."""
    print(json.dumps(plain(figures)), flush=True)


def run_program(work: Callable[[], None]) -> None:
    """Run ``work`` as such a program: report what is absent instead of figures, and end a failure with its reason."""
    try:
        work()
    except NotHere as absent:
        print(json.dumps({_ABSENT: str(absent), _PACKAGE: absent.package}), flush=True)
    except Exception as error:
        print(described(error), file=sys.stderr)
        raise


def _object_on(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        figures = json.loads(line)
    except ValueError:
        return None
    return figures if isinstance(figures, dict) else None
