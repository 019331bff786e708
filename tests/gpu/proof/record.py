"""What a part found, on disk after every figure: nothing measured is lost when the part or the machine goes."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FINISHED = "finished"
INCOMPLETE = "incomplete"  # some steps have no figure; the reason of each is kept
FAILED = "failed"
OVERRAN = "overran"
RUNNING = "running"

Json = dict[str, Any]


@dataclass
class Deadline:
    """When a part has to be done, by its own clock."""

    seconds: float
    begun: float = field(default_factory=time.monotonic)

    def left_s(self) -> float:
        return self.seconds - (time.monotonic() - self.begun)


@dataclass(frozen=True)
class Step:
    """One piece of a part. It is begun only while the time that it needs is left."""

    name: str
    needs_s: float
    run: Callable[[], None]


class NotHere(Exception):
    """What a step needs is not on this machine. That is an answer, not a failure."""


class PartRecord:
    def __init__(self, path: Path, number: int, title: str, *, resume: bool = False) -> None:
        self._path = path
        self._step = ""
        before = read(path) if resume else None
        self._told: Json = before or {
            "part": number,
            "title": title,
            "done": [],
            "goals": [],
            "tables": {},
            "notes": [],
        }
        self._told |= {"status": RUNNING, "reason": "", "left_out": [], "began_at": now()}
        self._forget_what_was_not_done()
        self._seconds_before = float(self._told.get("seconds", 0.0))
        self._begun = time.monotonic()
        self.save()

    def goal(
        self, goal: str, wanted: str, figure: float | None, unit: str, *, reached: bool | None, why: str = ""
    ) -> None:
        """``reached`` is None where nothing could be measured; then ``why`` says so."""
        self._told["goals"].append(
            {"step": self._step, "goal": goal, "wanted": wanted, "figure": figure, "unit": unit}
            | {"reached": reached, "why": why}
        )
        self.save()

    def row(self, table: str, **cells: Any) -> None:
        self._told["tables"].setdefault(table, []).append(plain({"step": self._step, **cells}))
        self.save()

    def rows(self, table: str) -> list[Json]:
        return list(self._told["tables"].get(table, []))

    def note(self, text: str) -> None:
        self._told["notes"].append({"step": self._step, "text": text})
        self.save()

    def take(self, steps: Sequence[Step], deadline: Deadline) -> None:
        """Each step by itself: one that fails, or has no time left, is left out with its reason."""
        for step in steps:
            if step.name in self._told["done"]:
                continue
            if deadline.left_s() < step.needs_s:
                self._leave_out(step.name, f"no time was left: it needs {step.needs_s:.0f} s; go on with --resume")
                continue
            self._step = step.name
            print(f"{now()} {step.name}", flush=True)
            try:
                step.run()
            except NotHere as absent:
                self.note(f"not here: {absent}")
                self._told["done"].append(step.name)
            except Exception as error:
                print(f"{step.name}: {error!r}", flush=True)
                self._leave_out(step.name, described(error))
            else:
                self._told["done"].append(step.name)
            self._step = ""
            self.save()

    def end(self) -> None:
        left_out = self._told["left_out"]
        self._told["status"] = INCOMPLETE if left_out else FINISHED
        self._told["reason"] = "; ".join(f"{each['step']}: {each['reason']}" for each in left_out)
        self.save()

    def save(self) -> None:
        self._told["seconds"] = round(self._seconds_before + time.monotonic() - self._begun, 1)
        write(self._path, self._told)

    def _leave_out(self, step: str, reason: str) -> None:
        self._told["left_out"].append({"step": step, "reason": reason})
        self.save()

    def _forget_what_was_not_done(self) -> None:
        """What a step left behind that did not end is measured anew."""
        done = {"", *self._told["done"]}
        kept = {name: [row for row in rows if row["step"] in done] for name, rows in self._told["tables"].items()}
        self._told["tables"] = {name: rows for name, rows in kept.items() if rows}
        for kind in ("goals", "notes"):
            self._told[kind] = [each for each in self._told[kind] if each["step"] in done]


def read(path: Path) -> Json | None:
    """None when it is not there, or not whole."""
    try:
        told = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None


def write(path: Path, told: Json) -> None:
    """Whole or not at all. JSON has no word for what is not a number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(plain(told), indent=1) + "\n")
    beside.replace(path)


def end_badly(path: Path, number: int, title: str, status: str, reason: str) -> None:
    """Said from outside, of a part that can no longer speak."""
    empty: Json = {"part": number, "title": title, "done": [], "goals": [], "tables": {}, "notes": [], "left_out": []}
    write(path, (read(path) or empty) | {"status": status, "reason": reason})


def described(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def plain(value: Any) -> Any:
    """As JSON has it: what is no number is absent, and a NumPy number is a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "item") and callable(value.item):
        return plain(value.item())
    return value
