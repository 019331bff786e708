"""Notes and tags of stored runs: kept, found by, carried in files, and refused where they would not be readable."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import fairlap
import pytest
from command_line import invoke, output, refusal
from fairlap.race.run import Run
from fairlap.store.runs.run_file import load_run_file
from fairlap.store.search import Wanted
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole

LATER = "2026-01-03T03:04:05+00:00"


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    later: Run = a_run()
    later.began_at = LATER
    with open_store() as store:
        return keep_whole(store, a_run()), keep_whole(store, later)


def listed(*options: str) -> list[str]:
    return [each["run"] for each in json.loads(output("runs", "--json", *options))["runs"]]


def test_a_run_is_found_by_its_tag_and_by_no_part_of_it(two: tuple[str, str]) -> None:
    first, _ = two
    assert invoke("runs", "tag", first, "nightly", "100% of it", "größer").exit_code == 0
    assert listed("--tag", "nightly") == listed("--tag", "100% of it") == listed("--tag", "größer") == [first]
    assert listed("--tag", "night") == listed("--tag", "NIGHTLY") == listed("--tag", "%") == []
    assert len(listed()) == 2
    [found] = fairlap.runs(tag="nightly")
    assert found.tags == ("nightly", "100% of it", "größer")


def test_tags_are_taken_away_one_by_one_and_never_doubled(two: tuple[str, str]) -> None:
    first, _ = two
    output("runs", "tag", first, "b", "a", "b")
    output("runs", "tag", first, "a", "c", "--remove", "b")
    assert fairlap.runs(tag="a")[0].tags == ("a", "c")
    assert "c" in output("runs", "tag", first)
    assert refusal("runs", "tag", first, "--remove", "b")
    assert fairlap.runs(tag="a")[0].tags == ("a", "c")


@pytest.mark.slow_but(first=2)
@pytest.mark.parametrize("tag", ["", "a,b", " a", "a\nb", "\x1b[31m", "x" * 101])
def test_a_tag_that_could_not_be_typed_again_is_refused(two: tuple[str, str], tag: str) -> None:
    assert refusal("runs", "tag", two[0], "good", tag)
    assert fairlap.runs()[1].tags == ()


def test_a_mistyped_tag_gets_the_one_that_was_meant(two: tuple[str, str]) -> None:
    output("runs", "tag", two[0], "nightly")
    assert "nightly" in output("runs", "--tag", "nihgtly")


def test_a_note_is_replaced_and_shown_with_the_run(two: tuple[str, str]) -> None:
    first, _ = two
    output("runs", "note", first, "before the rewrite")
    output("runs", "note", first, "the fan was off\nsecond line")
    assert fairlap.runs()[1].note == "the fan was off\nsecond line"
    shown = output("show", first)
    assert "the fan was off" in shown
    assert "before the rewrite" not in shown
    assert "the fan was off" in output("runs")
    output("runs", "note", first, "")
    assert fairlap.runs()[1].note == ""
    assert refusal("runs", "note", first, "x" * 10_001)


def test_a_file_of_the_run_holds_both(two: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = two
    output("runs", "note", first, "the fan was off")
    output("runs", "tag", first, "nightly")
    output("runs", "export", first, str(tmp_path / "run.json"))
    assert load_run_file(tmp_path / "run.json").note == "the fan was off"
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "other.sqlite"))
    output("runs", "import", str(tmp_path / "run.json"))
    [found] = fairlap.runs(tag="nightly")
    assert (found.id, found.note) == (first, "the fan was off")
    with open_store(reading=True) as store:
        assert (store.load(first).note, store.load(first).tags) == ("the fan was off", ("nightly",))


def test_tags_that_another_program_has_damaged_hide_no_run(two: tuple[str, str], tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as db:
        db.execute("UPDATE runs SET tags = '{' WHERE id = ?", (two[0],))
        db.commit()
    with open_store(reading=True) as store:
        assert len(store.runs()) == 2
        assert store.runs(Wanted(tag="nightly")) == []
