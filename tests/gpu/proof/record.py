"""The results of a part, written to disk after every figure so that a crash loses nothing."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FINISHED = "finished"
INCOMPLETE = "incomplete"  # there was no time for some steps; they can be done with --resume
FAILED = "failed"  # a step failed, or what it needs is not on the machine
TIMED_OUT = "timed out"
RUNNING = "running"
LATER = "left for another call"

Json = dict[str, Any]


@dataclass
class Deadline:
    """The time that a part may take, on a clock that a rehearsal replaces."""

    seconds: float
    clock: Callable[[], float] = time.monotonic
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.clock()

    def left_s(self) -> float:
        return self.seconds - (self.clock() - self.begun)


@dataclass(frozen=True)
class Step:
    """One piece of a part; it starts only if enough time is left for it. One that needs no time sums up the others."""

    name: str
    needs_s: float
    run: Callable[[], None]


SOURCE = "FAIRLAP_PROOF_SOURCE"  # a hash of what is measured
WITHOUT = "FAIRLAP_PROOF_WITHOUT"  # packages that a person decided to do without, separated by commas


class NotHere(Exception):
    """What a step needs is not on this machine: a failure, unless its package is one to do without."""

    def __init__(self, reason: str, package: str = "") -> None:
        super().__init__(reason)
        self.package = package

    @property
    def is_accepted(self) -> bool:
        return bool(self.package) and self.package in os.environ.get(WITHOUT, "").split(",")


class PartRecord:
    """``only`` names the steps that are taken now, as patterns; others are left for later, except those that sum up."""

    def __init__(
        self, path: Path, number: int, title: str, *, resume: bool = False, only: Sequence[str] = ("*",)
    ) -> None:
        self._path = path
        self._only = only
        self._step = ""
        before = read(path) if resume else None
        self._content: Json = before or {
            "part": number,
            "title": title,
            "done": [],
            "goals": [],
            "tables": {},
            "notes": [],
            "took_s": {},
            "source": os.environ.get(SOURCE, ""),
        }
        self._content.setdefault("took_s", {})
        self._content |= {"status": RUNNING, "reason": "", "left_out": [], "began_at": now()}
        self._forget_what_was_not_done()
        self._seconds_before = float(self._content.get("seconds", 0.0))
        self._begun = time.monotonic()
        self.save()

    def goal(
        self, goal: str, wanted: str, figure: float | None, unit: str, *, reached: bool | None, why: str = ""
    ) -> None:
        """``reached`` is None if the figure could not be measured; ``why`` then gives the reason."""
        self._content["goals"].append(
            {"step": self._step, "goal": goal, "wanted": wanted, "figure": figure, "unit": unit}
            | {"reached": reached, "why": why}
        )
        self.save()

    def row(self, table: str, **cells: Any) -> None:
        self._content["tables"].setdefault(table, []).append(plain({"step": self._step, **cells}))
        self.save()

    def rows(self, table: str) -> list[Json]:
        return list(self._content["tables"].get(table, []))

    def note(self, text: str) -> None:
        self._content["notes"].append({"step": self._step, "text": text})
        self.save()

    def take(self, steps: Sequence[Step], deadline: Deadline) -> None:
        """Run each step; one that fails or has no time left is skipped with the reason."""
        for step in steps:
            if step.name in self._content["done"]:
                if step.needs_s > 0:
                    continue
                self._content["done"].remove(step.name)  # what it sums up may have grown
                self._forget_what_was_not_done()
            if step.needs_s > 0 and not any(fnmatchcase(step.name, pattern) for pattern in self._only):
                self._leave_out(step.name, LATER, for_want_of_time=True)
                continue
            if deadline.left_s() < step.needs_s:
                reason = f"no time left: it needs {step.needs_s:.0f} s; continue with --resume"
                self._leave_out(step.name, reason, for_want_of_time=True)
                continue
            self._step = step.name
            print(f"{now()} {step.name}", flush=True)
            begun = deadline.clock()
            try:
                self.run_step(step)
            except NotHere as absent:
                if absent.is_accepted:
                    self.note(f"done without {absent.package}: {absent}")
                    self._content["done"].append(step.name)
                else:
                    self._leave_out(step.name, f"not here: {absent}")
            except Exception as error:
                print(f"{step.name}: {error!r}", flush=True)
                self._leave_out(step.name, described(error))
            else:
                self._content["done"].append(step.name)
            self._content["took_s"][step.name] = round(deadline.clock() - begun, 1)
            self._step = ""
            self.save()

    def run_step(self, step: Step) -> None:
        """Do the step; a rehearsal lets its clock advance instead."""
        step.run()

    def end(self) -> None:
        left_out = self._content["left_out"]
        lacks_time_only = all(each["for_want_of_time"] for each in left_out)
        self._content["status"] = (INCOMPLETE if lacks_time_only else FAILED) if left_out else FINISHED
        self._content["reason"] = "; ".join(undone_now(self._content)) or (LATER if left_out else "")
        self.save()

    def save(self) -> None:
        self._content["seconds"] = round(self._seconds_before + time.monotonic() - self._begun, 1)
        write(self._path, self._content)

    def _leave_out(self, step: str, reason: str, *, for_want_of_time: bool = False) -> None:
        self._content["left_out"].append({"step": step, "reason": reason, "for_want_of_time": for_want_of_time})
        self.save()

    def _forget_what_was_not_done(self) -> None:
        """Drop the figures of unfinished steps; they are measured again."""
        done = {"", *self._content["done"]}
        kept = {name: [row for row in rows if row["step"] in done] for name, rows in self._content["tables"].items()}
        self._content["tables"] = {name: rows for name, rows in kept.items() if rows}
        for kind in ("goals", "notes"):
            self._content[kind] = [each for each in self._content[kind] if each["step"] in done]


def undone_now(content: Json) -> list[str]:
    """List the steps of this run that were not done, with the reason; not those that were left for another call."""
    return [f"{each['step']}: {each['reason']}" for each in content.get("left_out", ()) if each["reason"] != LATER]


def read(path: Path) -> Json | None:
    """Return the object in a file, or None if the file is missing or incomplete."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def write(path: Path, content: Json) -> None:
    """Write the file atomically. Values that are not numbers become null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(plain(content), indent=1) + "\n")
    temporary.replace(path)


def write_end(path: Path, number: int, title: str, status: str, reason: str) -> None:
    """Record how a part ended whose process cannot do so any more."""
    empty: Json = {"part": number, "title": title, "done": [], "goals": [], "tables": {}, "notes": [], "left_out": []}
    empty["took_s"] = {}
    write(path, (read(path) or empty) | {"status": status, "reason": reason})


def described(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def plain(value: Any) -> Any:
    """Convert to what JSON can hold: NaN and infinity become None, NumPy scalars plain numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "item") and callable(value.item):
        return plain(value.item())
    return value
