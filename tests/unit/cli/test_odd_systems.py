"""Systems without shared memory, /proc or /sys, with few descriptors, one core or little memory: a race or a reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import error_code, fairlap

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts and limits are those of Linux"),
]

RACE = ["compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--blocks", "1", "--quiet"]
RACE += ["--seconds", "0.01"]
EMPTY = "mount -t tmpfs -o ro none"
GROUP = Path("/sys/fs/cgroup/memory")
MEMORY_BYTES = 350 * 2**20


def _can_mount() -> bool:
    unshare = shutil.which("unshare")
    return unshare is not None and not subprocess.run([unshare, "-Urm", "true"], capture_output=True).returncode


@pytest.mark.skipif(not _can_mount(), reason="needs unshare; runs on a Linux that allows user namespaces")
@pytest.mark.parametrize(
    "mounts",
    [
        f"{EMPTY} /dev/shm",
        f"{EMPTY} /proc/sys && {EMPTY} /sys",
        f"{EMPTY} /proc",
        f"{EMPTY} /proc && {EMPTY} /sys && {EMPTY} /dev/shm",
    ],
)
def test_a_race_runs_without_files_of_the_kernel(mounts: str, tmp_path: Path) -> None:
    before = f"exec unshare -Urm sh -c '{mounts} && exec \"$@\"' sh"
    done = fairlap(*RACE, before=before, FAIRLAP_STORE=tmp_path / "runs.sqlite", FAIRLAP_CACHE=tmp_path / "c")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert "os.getppid" in done.stdout


@pytest.mark.skipif(not _can_mount(), reason="needs unshare; runs on a Linux that allows user namespaces")
def test_a_full_cache_ends_in_one_line_and_loses_nothing_of_the_store(tmp_path: Path) -> None:
    """The weights and inputs of a model are written there; 64 KiB do not hold them."""
    (tmp_path / "c").mkdir()
    store = tmp_path / "runs.sqlite"
    assert not fairlap(*RACE, FAIRLAP_STORE=store).returncode
    small = f"mount -t tmpfs -o size=64k none {tmp_path}/c"
    before = f"exec unshare -Urm sh -c '{small} && exec \"$@\"' sh"
    race = ["compare", "resnet50", "--on", "torch", "--blocks", "1", "--quiet", "--threads", "1"]
    done = fairlap(*race, before=before, FAIRLAP_STORE=store, FAIRLAP_CACHE=tmp_path / "c")
    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 2)
    assert error_code(done) == "E_TENSOR_FILE"
    *_, first = json.loads(fairlap("runs", "--json", FAIRLAP_STORE=store).stdout)["runs"]
    assert first["state"] == "finished"


def test_a_race_runs_on_one_core(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    done = fairlap(*RACE, before=f"exec taskset -c {core}", FAIRLAP_STORE=tmp_path / "runs.sqlite")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.fixture
def group() -> Iterator[Path]:
    """Make a group of processes with little memory, of version 1 or 2."""
    for folder, limit in ((GROUP, "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        own = folder / f"fairlap-test-{os.getpid()}"
        try:
            own.mkdir()
        except OSError:
            continue
        try:
            (own / limit).write_text(str(MEMORY_BYTES))
            yield own
            return
        except OSError:
            continue
        finally:
            own.rmdir()
    pytest.skip("needs the right to create a control group with a limit of memory")


def test_a_race_runs_in_a_group_with_little_memory(group: Path, tmp_path: Path) -> None:
    before = f"echo $$ > {group}/cgroup.procs && exec"
    done = fairlap(*RACE, before=before, FAIRLAP_STORE=tmp_path / "runs.sqlite")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_without_address_space_there_is_one_line(tmp_path: Path) -> None:
    """400 MB were enough for one that imports no framework."""
    done = fairlap(*RACE, before="ulimit -v 400000;", FAIRLAP_STORE=tmp_path / "runs.sqlite")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "before",
    [
        "ulimit -n 64;",
        "ulimit -n 32;",
        "ulimit -v 4000000;",
        "export LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0;",
        "export PYTHONIOENCODING=ascii;",
        "ulimit -c 0; exec <&-;",
    ],
)
def test_a_race_runs_or_says_why_not(before: str, tmp_path: Path) -> None:
    done = fairlap(*RACE, before=before, FAIRLAP_STORE=tmp_path / "runs.sqlite", FAIRLAP_CACHE=tmp_path / "c")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_a_race_runs_in_a_folder_with_spaces_letters_and_newlines(tmp_path: Path) -> None:
    folder = tmp_path / "a b ü\nc"
    folder.mkdir()
    done = fairlap(*RACE, "-o", "race.json", cwd=folder, FAIRLAP_STORE=folder / "runs.sqlite")
    assert done.returncode == 0, done.stderr
    assert (folder / "race.json").exists()


@pytest.mark.parametrize("files", [8, 10, 15])
def test_with_too_few_open_files_that_is_the_cause(files: int, tmp_path: Path) -> None:
    before, store = f"ulimit -n {files};", tmp_path / "runs.sqlite"
    done = fairlap(*RACE, before=before, FAIRLAP_STORE=store, FAIRLAP_CACHE=tmp_path / "c")
    assert "Traceback" not in done.stderr
    assert (done.returncode, error_code(done)) == (2, "E_NOT_AVAILABLE")
    assert f"may have {files} open" in done.stderr
