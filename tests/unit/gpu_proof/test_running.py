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


def test_a_part_that_ends_well_is_finished_and_its_figures_are_in_its_file(part_that: Make, tmp_path: Path) -> None:
    part = ran(
        part_that,
        tmp_path,
        """
        record.take([Step("one", 0, lambda: record.row("figures", ns=1.5))], deadline)
        record.goal("a goal", "<= 2", 1.5, "ns", reached=True)
        """,
    )
    assert (part["status"], part["reason"], part["done"]) == ("finished", "", ["one"])
    assert part["tables"]["figures"] == [{"step": "one", "ns": 1.5}]
    assert part["goals"][0]["reached"] is True


def test_a_step_that_raises_is_skipped_with_its_reason_and_the_others_run(part_that: Make, tmp_path: Path) -> None:
    part = ran(
        part_that,
        tmp_path,
        """
        def wrong():
            record.row("figures", ns=1)
            raise ValueError("no such kernel")
        record.take([Step("wrong", 0, wrong), Step("right", 0, lambda: record.row("figures", ns=2))], deadline)
        """,
    )
    assert part["status"] == "incomplete"
    assert part["reason"] == "wrong: ValueError: no such kernel"
    assert part["done"] == ["right"]


def test_what_is_not_installed_is_an_answer_and_no_failure(part_that: Make, tmp_path: Path) -> None:
    part = ran(
        part_that,
        tmp_path,
        """
        def absent():
            raise NotHere("it is not installed")
        record.take([Step("absent", 0, absent)], deadline)
        """,
    )
    assert part["status"] == "finished"
    assert part["notes"] == [{"step": "absent", "text": "not here: it is not installed"}]


def test_a_step_without_time_is_skipped_before_it_begins(part_that: Make, tmp_path: Path) -> None:
    part = ran(part_that, tmp_path, 'record.take([Step("long", 900, lambda: 1 / 0)], deadline)')
    assert part["status"] == "incomplete"
    assert "no time left: it needs 900 s" in part["reason"]


def test_a_part_that_raises_outside_its_steps_has_failed_with_its_reason(part_that: Make, tmp_path: Path) -> None:
    part = ran(part_that, tmp_path, 'record.row("figures", ns=1)\nraise RuntimeError("the context is broken")')
    assert part["status"] == "failed"
    assert part["reason"] == "exit status 1: RuntimeError: the context is broken"
    assert part["tables"]["figures"][0]["ns"] == 1


def test_a_part_that_crashes_has_failed_with_its_signal(part_that: Make, tmp_path: Path) -> None:
    part = ran(part_that, tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert part["status"] == "failed"
    assert part["reason"].startswith("killed by signal 11")


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


def test_without_resume_a_part_starts_from_the_beginning(part_that: Make, tmp_path: Path) -> None:
    body = 'record.take([Step("first", 0, lambda: record.row("figures", ns={ns}))], deadline)'
    ran(part_that, tmp_path, body.format(ns=1))
    part = ran(part_that, tmp_path, body.format(ns=2))
    assert [row["ns"] for row in part["tables"]["figures"]] == [2]


def test_figures_that_are_not_numbers_are_absent_in_the_file(part_that: Make, tmp_path: Path) -> None:
    part = ran(
        part_that,
        tmp_path,
        """
        import numpy
        record.row("figures", nan=float("nan"), inf=numpy.float32("inf"), fine=numpy.float64(2.5))
        """,
    )
    assert part["tables"]["figures"] == [{"step": "", "nan": None, "inf": None, "fine": 2.5}]
