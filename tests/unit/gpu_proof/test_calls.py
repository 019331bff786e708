"""The calls of nine minutes, rehearsed on the fakes with a clock that counts what each step needs on a real device."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from cuda_on_fakes import environment_with_fakes, on_fakes
from gpu.proof.calls import BUILD_S, CALLS, END_S, LONGEST_S, OPTIONAL, Call
from gpu.proof.machine import PAGES, ROOT
from gpu.proof.parts import PARTS, Part
from gpu.proof.picture import picture_of, place_of
from gpu.proof.record import FINISHED, INCOMPLETE, LATER, Deadline, PartRecord, Step, read, undone_now
from gpu.proof.running import run_part

from .made_up_parts import Make, part_that

__all__ = ["part_that"]

START_S = 2.0  # of a part's process, before its first step


class Clock:
    """A clock that only steps move."""

    def __init__(self, pace: float = 1.0) -> None:
        self.now_s, self._pace = 0.0, pace

    def __call__(self) -> float:
        return self.now_s

    def spend(self, seconds: float) -> None:
        self.now_s += self._pace * seconds


class Rehearsed(PartRecord):
    """Takes the steps of a part in the time that they need, without doing them."""

    clock: Clock

    def run_step(self, step: Step) -> None:
        self.clock.spend(step.needs_s)


def rehearse(part: Part, only: Sequence[str], seconds: float, clock: Clock) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "part.json"
        record = Rehearsed(file, part.number, part.title, only=only)
        record.clock = clock
        import_module(f"gpu.proof.parts.{part.module.rpartition('.')[2]}").run(record, Deadline(seconds, clock))
        record.end()
        return read(file) or {}


def rehearsed_call(call: Call, pace: float) -> tuple[float, list[str]]:
    """Return the seconds that a call takes, and what it leaves undone."""
    clock = Clock(pace)
    clock.spend(BUILD_S)
    undone: list[str] = []
    for piece in call.pieces:
        clock.spend(START_S)
        undone += undone_now(rehearse(piece.part, piece.only, piece.seconds, clock))
    clock.spend(END_S)
    return clock.now_s, undone


@pytest.mark.slow
@on_fakes
def test_every_call_does_all_its_steps_in_nine_minutes_and_one_that_needs_more_is_found() -> None:
    for call in CALLS:
        assert call.most_s <= LONGEST_S, call.title
        seconds, undone = rehearsed_call(call, pace=1.0)
        assert undone == [], call.title
        assert 0.5 * LONGEST_S < seconds <= LONGEST_S, call.title
        assert rehearsed_call(call, pace=1.5)[1] != [], call.title


@on_fakes
def test_the_time_of_a_step_is_no_less_than_what_it_took_on_a_real_device() -> None:
    compared = 0
    for file in PAGES.glob("*.json"):
        for measured in (read(file) or {})["parts"]:
            part = next(each for each in PARTS if each.number == measured["part"])
            done = measured.get("done", ())
            if not done:
                continue
            needed = rehearse(part, [step.replace("[", "[[]") for step in done], 1e6, Clock())
            counted_s = sum(needed["took_s"].get(step, 0.0) for step in done)
            assert counted_s >= measured["seconds"], (file.name, part.name)
            compared += 1
    assert compared > 0


def test_every_step_of_a_call_is_of_a_part_and_the_first_call_proves_the_engine() -> None:
    assert [call.number for call in CALLS] == [1, 2, 3, 4]
    assert {piece.name for call in CALLS for piece in call.pieces} == {part.name for part in PARTS}
    assert CALLS[0].pieces[0].name == "truth"


def test_steps_of_another_call_are_left_and_taken_by_it(part_that: Make, tmp_path: Path) -> None:
    part = part_that(
        """
        def figures(name):
            return lambda: record.row("figures", name=name)
        steps = [Step(name, 1, figures(name)) for name in ("one", "two", "three")]
        record.take([*steps, Step("sum", 0, lambda: record.note(str(len(record.rows("figures")))))], deadline)
        """
    )
    first = run_part(part, tmp_path, seconds=20, resume=True, only=("t*",))
    assert (first["status"], first["done"], first["reason"]) == (INCOMPLETE, ["two", "three", "sum"], LATER)
    assert undone_now(first) == []
    assert set(first["took_s"]) == {"two", "three", "sum"}
    seen: list[int] = []
    second = run_part(part, tmp_path, seconds=20, resume=True, only=("one",), meanwhile=lambda: seen.append(1))
    assert second["status"] == FINISHED
    assert [row["name"] for row in second["tables"]["figures"]] == ["two", "three", "one"]
    assert [note["text"] for note in second["notes"]] == ["3"]


@pytest.mark.thorough
@pytest.mark.timeout(1500)
def test_the_first_call_is_taken_whole_on_the_fakes_and_goes_on_from_what_it_left(tmp_path: Path) -> None:
    first = proof(tmp_path, "--call", "1")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "call 1: done" in first.stdout
    pages = tmp_path / "pages"
    document = read(pages / "fairlap-fake-device-0.json") or {}
    [truth] = [part for part in document["parts"] if part["part"] == 2]
    assert truth["status"] == FINISHED
    assert all(goal["reached"] for goal in truth["goals"])
    assert document["pictures"] == ["fairlap-fake-device-0-call-1.svg"]
    assert "fairlap-fake-device-0-call-1.svg" in (pages / "fairlap-fake-device-0.md").read_text()
    ElementTree.parse(pages / document["pictures"][0])
    (tmp_path / "work").rename(tmp_path / "gone with its machine")
    again = proof(tmp_path, "--call", "1")
    assert "part 2, Truth: kernels of known length: finished before" in again.stdout
    assert again.returncode == 0


def proof(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    places = ["--work", str(folder / "work"), "--to", str(folder / "pages"), "--kit", str(folder)]
    without = ",".join((*OPTIONAL, "torch", "jax", "rehearsal"))
    return subprocess.run(
        [sys.executable, "-m", "tests.gpu.proof", "--installed", "--without", without, *places, *options],
        env={**environment_with_fakes(), "FAIRLAP_GPU_REHEARSAL": "1", "TMPDIR": os.environ.get("TMPDIR", "/tmp")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def goal(wanted: str, figure: float | None, reached: bool | None = True) -> dict[str, Any]:
    return {"goal": "a <goal>", "wanted": wanted, "figure": figure, "unit": "ns", "reached": reached, "why": ""}


@pytest.mark.parametrize(
    ("wanted", "figure", "place"),
    [
        ("<= 500 ns", 500.0, 0.5),
        ("<= 500 ns", 50.0, 0.25),
        ("<= 500 ns", 5e6, 1.0),
        ("<= 500 ns", 0.0, 0.0),
        ("+- 5% or 100 us", -0.5, 0.75),
        ("0", 0.0, None),
        ("<= 1 ns", None, None),
    ],
)
def test_a_figure_is_placed_by_its_distance_from_the_limit(wanted: str, figure: float | None, place: float) -> None:
    assert place_of(goal(wanted, figure)) == (place if place is None else pytest.approx(place))


def test_the_picture_of_a_call_has_every_goal_of_its_parts_and_no_other() -> None:
    parts = [
        {"part": 2, "goals": [goal("<= 1 ns", 0.5), goal("<= 1 ns", 3.0, False), goal("all", None, None)]},
        {"part": 8, "goals": [goal("0", 0.0)]},
    ]
    root = ElementTree.fromstring(picture_of({"device": "A & B", "parts": parts}, CALLS[0]))
    space = "{http://www.w3.org/2000/svg}"
    title = root.find(f"{space}title")
    assert title is not None
    assert title.text == "A & B, call 1: 1 of 3 goals reached"
    assert [mark.text for mark in root.iter(f"{space}title")][1:] == ["reached", "missed", "unknown"]
    assert sum(text.text == "a <goal>" for text in root.iter(f"{space}text")) == 3
