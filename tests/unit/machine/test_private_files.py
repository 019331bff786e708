"""What fairlap keeps for a user is for that user alone, whatever the umask; what a user names follows the umask."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import fairlap
from fairlap.machine.files.atomic_files import write_atomically
from fairlap.machine.files.private_files import make_private_file, make_private_folder, tighten
from fairlap.store import opening
from fairlap.store import schema as store_schema
from fairlap.store.repair import repair_store
from fairlap.store.runs.run_locks import hold
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole, recording_of

UMASKS = [0, 0o022, 0o077, 0o277, 0o777]


@contextmanager
def umask(bits: int) -> Iterator[None]:
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    return sorted(
        f"{path.name} {mode(path):o}" for path in folder.rglob("*") if not path.is_symlink() and mode(path) & 0o77
    )


@pytest.mark.parametrize("bits", UMASKS)
def test_the_store_and_the_files_next_to_it_are_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    monkeypatch.delenv("FAIRLAP_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = tmp_path / "data" / "fairlap" / "runs.sqlite"
    with umask(bits), open_store() as store:
        recording = recording_of(store, a_run(), processes=2)
        held = hold(path, "20260101-000000-aaaaaa")
        names = {each.name.removeprefix("runs.sqlite") for each in path.parent.iterdir()}
        assert {"", "-wal", "-shm", ".20260101-000000-aaaaaa.running"} <= names
        assert open_to_others(tmp_path) == []
        assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)
        held.close()
        recording.end({})


def test_a_looser_store_of_this_user_is_tightened_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with open_store(path) as store:
        recording_of(store, a_run(), processes=2)
        for end in ("", "-wal", "-shm"):
            path.with_name(f"{path.name}{end}").chmod(0o666)
        tmp_path.chmod(0o755)
        with open_store(path, reading=True):
            assert open_to_others(tmp_path) == []
    assert mode(tmp_path) == 0o755  # a folder that the user chose may hold other things


def test_copies_of_a_store_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.sqlite"
    with umask(0):
        with open_store(path) as store:
            keep_whole(store, a_run())
        monkeypatch.setattr(opening, "STEPS", [*store_schema.STEPS, lambda db: db.execute("CREATE TABLE more (a)")])
        with open_store(path):
            pass
        monkeypatch.undo()
        assert (tmp_path / f"runs.sqlite.schema-{len(store_schema.STEPS)}").exists()
        (tmp_path / f"runs.sqlite.schema-{len(store_schema.STEPS)}").replace(path)
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE samples SET crc32 = crc32 + 1 WHERE number = 1")
            db.commit()
        path.chmod(0o666)
        assert repair_store(path).damaged is not None
    assert open_to_others(tmp_path) == []


def test_a_store_that_another_user_could_read_is_refused_to_that_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    folder = Path("/tmp") / f"fairlap-private-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        path = folder / "runs.sqlite"
        with umask(0o022), open_store(path) as store:
            keep_whole(store, a_run())
        read = subprocess.run(
            [sys.executable, "-c", "import os, sys; os.setuid(65534); open(sys.argv[1], 'rb')", str(path)],
            capture_output=True,
            text=True,
        )
        assert "PermissionError" in read.stderr
    finally:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


@pytest.mark.slow
def test_the_cache_and_the_data_of_a_race_are_private_and_named_files_follow_the_umask(tmp_path: Path) -> None:
    home, report = tmp_path / "home", tmp_path / "race.json"
    home.mkdir()
    environment: dict[str, Any] = {
        "HOME": home,
        "XDG_CACHE_HOME": "",
        "XDG_DATA_HOME": "",
        "FAIRLAP_STORE": "",
        "FAIRLAP_CACHE": "",
    }
    race = ["compare", "mlp", "--on", "onnxruntime", "--precision", "fp32,int8", "--blocks", "1", "--seconds", "0.02"]
    race += ["-o", str(report), "-o", str(tmp_path / "r.csv")]
    done = fairlap(*race, before="umask 022;", **environment)
    assert done.returncode == 0, done.stderr
    bundled = fairlap("bundle", "last", "-o", tmp_path / "r.fairlap", "--no-page", before="umask 027;", **environment)
    assert bundled.returncode == 0, bundled.stderr
    kept = {path.name for path in home.rglob("*")}
    assert "runs.sqlite" in kept
    assert any(name.endswith(".safetensors") for name in kept)
    assert open_to_others(home) == []
    assert (mode(report), mode(tmp_path / "r.csv"), mode(tmp_path / "r.fairlap")) == (0o644, 0o644, 0o640)


def test_folders_of_an_earlier_version_are_tightened_and_what_is_above_them_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    chosen = tmp_path / "chosen"
    monkeypatch.setenv("FAIRLAP_CACHE", str(chosen))
    for folder in (tmp_path / "cache" / "fairlap" / "work", chosen / "work", chosen / "mine"):
        folder.mkdir(parents=True)
    for folder in (
        tmp_path / "cache",
        tmp_path / "cache/fairlap",
        tmp_path / "cache/fairlap/work",
        chosen,
        chosen / "work",
    ):
        folder.chmod(0o755)
    make_private_folder(tmp_path / "cache" / "fairlap" / "work" / "mlp")
    make_private_folder(chosen / "work" / "mlp")
    assert open_to_others(tmp_path / "cache") == []
    assert mode(tmp_path / "cache" / "fairlap") == mode(chosen / "work") == mode(chosen / "work" / "mlp") == 0o700
    assert mode(tmp_path / "cache") == mode(chosen) == 0o755


def test_devices_and_targets_of_links_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").touch(mode=0o644)
    (tmp_path / "target").chmod(0o644)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe").chmod(0o666)
    for name in ("link", "pipe"):
        tighten(tmp_path / name)
    make_private_file(tmp_path / "link")
    assert (mode(tmp_path / "target"), mode(tmp_path / "pipe")) == (0o644, 0o666)


def test_a_file_that_is_replaced_keeps_the_mode_that_its_user_gave_it(tmp_path: Path) -> None:
    file = tmp_path / "race.json"
    with umask(0o022):
        write_atomically(file, b"one")
        assert mode(file) == 0o644
        file.chmod(0o600)
        write_atomically(file, b"two")
    assert (file.read_bytes(), mode(file)) == (b"two", 0o600)
