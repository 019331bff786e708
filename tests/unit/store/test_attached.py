"""Files attached to a stored run: the same bytes back, gone with the run, and never in the way of other files."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke, output, refusal
from fairlap.store.runs.attached import attached_folder
from fairlap.store.store import open_store
from published_schemas import checked
from runs_for_rows import a_run
from runs_in_store import keep_whole

TRACE = bytes(range(256)) * 40


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("trace.bin").write_bytes(TRACE)
    Path("build.log").write_text("first\n")
    with open_store() as store:
        return keep_whole(store, a_run())


def files_of(run: str, *options: str) -> dict[str, dict[str, Any]]:
    found = checked(output("runs", "attach", run, *options, "--json"))
    assert found["run"] == run
    return {each["name"]: each for each in found["files"]}


def test_what_is_attached_comes_back_to_the_byte_and_is_private(run: str, tmp_path: Path) -> None:
    found = files_of(run, "trace.bin", "build.log")
    assert found["trace.bin"]["sha256"] == hashlib.sha256(TRACE).hexdigest()
    assert (found["trace.bin"]["bytes"], list(found)) == (len(TRACE), ["build.log", "trace.bin"])
    Path("trace.bin").unlink()
    output("runs", "attach", run, "--save", "again")
    assert Path("again/trace.bin").read_bytes() == TRACE
    modes = {stat.S_IMODE(path.stat().st_mode) for path in attached_folder(tmp_path / "runs.sqlite", run).iterdir()}
    assert modes == {0o600}
    assert "build.log, trace.bin" in output("show", run)


def test_a_file_of_a_name_that_is_there_replaces_it_and_one_is_removed(run: str) -> None:
    files_of(run, "build.log")
    Path("build.log").write_text("second, and longer\n")
    [found] = files_of(run, "build.log").values()
    assert found["bytes"] == len("second, and longer\n")
    assert files_of(run, "--remove", "build.log") == {}
    assert refusal("runs", "attach", run, "--remove", "build.log")


def test_they_go_with_the_run(run: str, tmp_path: Path) -> None:
    files_of(run, "trace.bin")
    output("runs", "remove", run)
    assert [path.name for path in tmp_path.iterdir() if "attached" in path.name] == []


def test_what_is_no_plain_file_is_refused_and_nothing_is_overwritten(run: str) -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("other").mkdir()
    Path("other/build.log").touch()
    for files in (["none"], ["folder"], ["pipe"], ["build.log", "other/build.log"]):
        assert refusal("runs", "attach", run, *files)
    assert files_of(run) == {}
    files_of(run, "build.log")
    assert refusal("runs", "attach", run, "--save", "other")
    assert Path("other/build.log").read_text() == ""
    assert invoke("runs", "attach", "20000101-000000-abc", "build.log").exit_code != 0


def test_a_run_without_any_says_so(run: str) -> None:
    assert json.loads(output("runs", "attach", run, "--json"))["files"] == []
    assert run in output("runs", "attach", run)
