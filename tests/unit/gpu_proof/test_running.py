"""A part may fail, crash or hang: its reason and its figures are kept, and it can be resumed."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
from gpu.proof.record import Deadline, Json, PartRecord, Step, read
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
    assert (part["status"], part["done"]) == ("failed", ["right"])
    assert "ZeroDivisionError" in part["reason"]
    assert "absent: not here" in part["reason"]
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


@pytest.mark.slow
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


@pytest.mark.parametrize(("without", "status"), [("", "failed"), ("cupy", "failed"), ("cupy,jax", "finished")])
def test_a_missing_package_is_a_failure_unless_it_was_decided_to_do_without(
    part_that: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str, status: str
) -> None:
    monkeypatch.setenv("FAIRLAP_PROOF_WITHOUT", without)
    part = ran(
        part_that,
        tmp_path,
        """
        def absent():
            raise NotHere("JAX is not installed", "jax")
        record.take([Step("absent", 0, absent), Step("right", 0, lambda: record.row("figures", ns=1))], deadline)
        """,
    )
    assert part["status"] == status
    assert part["tables"]["figures"][0]["ns"] == 1


def test_a_part_that_only_lacks_time_is_incomplete(part_that: Make, tmp_path: Path) -> None:
    part = ran(part_that, tmp_path, 'record.take([Step("long", 900, lambda: None)], deadline)')
    assert (part["status"], part["done"]) == ("incomplete", [])


def test_resumed_a_part_does_only_what_was_not_done(part_that: Make, tmp_path: Path) -> None:
    steps = """
        def second():
            record.row("figures", ns=2)
            {trouble}
        record.take([Step("first", 1, lambda: record.row("figures", ns={first})), Step("second", 0, second)], deadline)
        """
    before = ran(part_that, tmp_path, steps.format(first=1, trouble="raise ValueError"))
    assert before["status"] == "failed"
    part = ran(part_that, tmp_path, steps.format(first=99, trouble=""), resume=True)
    assert part["status"] == "finished"
    # The failed step's figures are gone; the first was not run again.
    assert [row["ns"] for row in part["tables"]["figures"]] == [1, 2]


def test_what_sums_up_is_done_anew_when_a_part_is_resumed(tmp_path: Path) -> None:
    """A first GPU's page said that no sanitizer was there, beside two rows of one."""

    def part(record: PartRecord, files: tuple[str, ...]) -> None:
        def count() -> None:
            record.goal("files", "all", len(record.rows("files")), "", reached=True)

        steps = [Step(name, 1.0, partial(record.row, "files", name=name)) for name in files]
        record.take([*steps, Step("summary", 0, count)], Deadline(60))
        record.end()

    path = tmp_path / "part.json"
    part(PartRecord(path, 1, "made up"), ("a",))
    part(PartRecord(path, 1, "made up", resume=True), ("a", "b"))
    content = read(path)
    assert content is not None
    assert [goal["figure"] for goal in content["goals"]] == [2]
    assert [row["name"] for row in content["tables"]["files"]] == ["a", "b"]
