"""A part may fail, crash or hang: its reason and its figures are kept, and it can be resumed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gpu.proof.record import Json
from gpu.proof.running import run_part

from .made_up_parts import Make, part_that

__all__ = ["part_that"]

pytestmark = pytest.mark.sanitized


def ran(part_that: Make, folder: Path, body: str, *, seconds: float = 20, resume: bool = False) -> Json:
    return run_part(part_that(body), folder, seconds=seconds, resume=resume, grace_s=0.5)


def test_steps_that_fail_are_named_and_the_others_keep_their_figures(part_that: Make, tmp_path: Path) -> None:
    part = ran(
        part_that,
        tmp_path,
        """
        def absent():
            raise NotHere("it is not installed")
        def figures():
            record.row("figures", ns=2, nan=float("nan"))
        steps = [Step("wrong", 0, lambda: 1 / 0), Step("absent", 0, absent), Step("long", 900, figures)]
        record.take([*steps, Step("right", 0, figures)], deadline)
        """,
    )
    assert (part["status"], part["done"]) == ("incomplete", ["absent", "right"])
    assert "ZeroDivisionError" in part["reason"]
    assert [note["step"] for note in part["notes"]] == ["absent"]
    assert part["tables"]["figures"] == [{"step": "right", "ns": 2, "nan": None}]


@pytest.mark.parametrize(
    ("ending", "reason"),
    [('raise RuntimeError("broken")', "RuntimeError: broken"), ("os.kill(os.getpid(), 11)", "signal 11")],
)
def test_a_part_that_ends_badly_keeps_its_figures(part_that: Make, tmp_path: Path, ending: str, reason: str) -> None:
    part = ran(part_that, tmp_path, f'import os\nrecord.row("figures", ns=1)\n{ending}')
    assert part["status"] == "failed"
    assert reason in part["reason"]
    assert part["tables"]["figures"][0]["ns"] == 1


def test_a_part_that_overruns_is_stopped_with_everything_that_it_started(part_that: Make, tmp_path: Path) -> None:
    begun = time.monotonic()
    marker = tmp_path / "still running"
    part = ran(
        part_that,
        tmp_path,
        f"""
        import subprocess, time
        record.row("figures", ns=7)
        subprocess.Popen(["sh", "-c", "sleep 4; touch '{marker}'"])
        time.sleep(60)
        """,
        seconds=1.5,
    )
    assert time.monotonic() - begun < 30
    assert part["status"] == "timed out"
    assert part["tables"]["figures"][0]["ns"] == 7
    time.sleep(4.5)
    assert not marker.exists()


def test_resumed_a_part_does_only_what_was_not_done(part_that: Make, tmp_path: Path) -> None:
    steps = """
        def second():
            record.row("figures", ns=2)
            {trouble}
        record.take([Step("first", 0, lambda: record.row("figures", ns={first})), Step("second", 0, second)], deadline)
        """
    before = ran(part_that, tmp_path, steps.format(first=1, trouble="raise ValueError"))
    assert before["status"] == "incomplete"
    part = ran(part_that, tmp_path, steps.format(first=99, trouble=""), resume=True)
    assert part["status"] == "finished"
    # The failed step's figures are gone; the first was not run again.
    assert [row["ns"] for row in part["tables"]["figures"]] == [1, 2]
