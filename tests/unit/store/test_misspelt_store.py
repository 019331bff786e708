"""A store that is named wrongly is not made: neither by commands that read, nor in a folder that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import SHORT, error_code, here
from fairlap.errors import InvalidRequest
from fairlap.store.errors import NoSuchRun, StoreError
from fairlap.store.opening import require_store
from fairlap.store.store import open_store

RACE = ("compare", "--command", "a=true", "--command", "b=true", *(each for each in SHORT if each != "--no-store"))
READING = (
    "show last", "history mlp", "report last -o page.html", "stale", "gate last", "rerun last", "runs note last text",
    "runs tag last kept", "runs remove last", "runs export last run.json", "compare --resume last",
)  # fmt: skip


@pytest.mark.parametrize("folder", ["", "misspelt"])
@pytest.mark.parametrize("line", READING)
def test_a_command_that_reads_creates_no_store(tmp_path: Path, line: str, folder: str) -> None:
    store = tmp_path / folder / "runs.sqlite"
    done = here(*line.split(), cwd=tmp_path, FAIRLAP_STORE=store)
    assert error_code(done) == "E_NO_RUN"
    assert str(store) in done.stderr
    assert not any(tmp_path.iterdir())


def test_a_race_refuses_a_folder_that_is_not_there_before_it_runs(tmp_path: Path) -> None:
    done = here(*RACE, cwd=tmp_path, FAIRLAP_STORE=tmp_path / "misspelt" / "runs.sqlite")
    assert (done.returncode, error_code(done)) == (2, "E_STORE")
    assert str(tmp_path / "misspelt") in done.stderr
    assert not any(tmp_path.iterdir())


def test_a_named_file_is_made_where_its_folder_is(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        open_store(tmp_path / "misspelt" / "runs.sqlite")
    open_store(tmp_path / "runs.sqlite").close()
    assert (tmp_path / "runs.sqlite").is_file()


def test_the_folder_of_the_usual_store_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLAP_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.raises(NoSuchRun) as none_yet:
        require_store(tmp_path / "data" / "fairlap" / "runs.sqlite")
    assert isinstance(none_yet.value, InvalidRequest)
    open_store().close()
    assert (tmp_path / "data" / "fairlap" / "runs.sqlite").is_file()
