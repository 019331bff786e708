"""Wheels that are built from sources: once for each content, from a copy, and never half."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fairlap.errors import FairlapError
from fairlap.launch import environments
from fairlap.launch.packages import built_wheels
from fairlap.launch.packages.built_wheels import built_wheel, wheels_in
from fairlap.launch.packages.interpreters import own_interpreter
from fairlap.launch.packages.origins import with_pinned_origins
from fairlap.machine.files.folder_hash import folder_hash
from fairlap.machine.programs.processes import lives
from fairlap.request.names import contestant_named
from histories_of_commits import git
from wheels import write_source

pytestmark = pytest.mark.sanitized


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIST_OF_BUILDS", str(tmp_path / "builds"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return write_source(tmp_path / "source", steps=123)


def build(place: str, folder: Path, *flags: str) -> Path:
    [name] = with_pinned_origins([contestant_named(f"python:call=hotpkg.fn:with={place}")])
    return built_wheel(name.release, flags, Path(sys.executable), own_interpreter(), folder)


def steps_in(wheel: Path) -> int:
    text = zipfile.ZipFile(wheel).read("hotpkg.py").decode()
    return int(text.partition("range(")[2].partition(")")[0])


def builds(tmp_path: Path) -> int:
    return (tmp_path / "builds").read_text().count("built")


def test_two_races_build_a_folder_once_and_write_nothing_into_it(source: Path, tmp_path: Path) -> None:
    before = (folder_hash(source), sorted(source.iterdir()))
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(lambda _: build(str(source), tmp_path / "wheels"), range(2))
    assert first == second
    assert (steps_in(first), builds(tmp_path)) == (123, 1)
    assert (folder_hash(source), sorted(source.iterdir())) == before


@pytest.mark.slow
def test_a_commit_is_built_with_flags_of_its_own_and_its_repository_is_left_alone(source: Path, tmp_path: Path) -> None:
    git(source, "init", "--quiet")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "one")
    commit = git(source, "rev-parse", "HEAD")
    (source / "steps").write_text("not committed\n")
    place, wheels = f"git+file://{source}@{commit}", tmp_path / "wheels"
    before = (git(source, "status", "--porcelain"), folder_hash(source / ".git"))
    plain, flagged = build(place, wheels), build(place, wheels, "HOT_STEPS=7")
    assert (steps_in(plain), steps_in(flagged)) == (123, 7)
    assert (git(source, "status", "--porcelain"), folder_hash(source / ".git")) == before


def test_a_failed_build_has_the_last_lines_of_its_log_and_leaves_nothing_half(source: Path, tmp_path: Path) -> None:
    with pytest.raises(FairlapError) as caught:
        build(str(source), tmp_path / "wheels", "HOT_STEPS=-1")
    assert caught.value.code == "E_BUILD"
    assert "\n" not in str(caught.value)
    assert "cannot take -1 steps" in str(caught.value)
    [log] = (tmp_path / "wheels").glob("*.log")
    assert str(log) in str(caught.value)
    assert "cannot take -1 steps" in log.read_text()
    assert wheels_in(tmp_path / "wheels") == []


def test_ctrl_c_leaves_no_half_of_a_wheel_and_a_killed_one_is_pruned(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: list[str], *_places: object, **_options: object) -> None:
        folder = Path(command[command.index("--wheel-dir") + 1])
        folder.mkdir()
        (folder / "hotpkg-1.0-py3-none-any.whl").write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setenv("FAIRLAP_ENVS", str(tmp_path / "envs"))
    with monkeypatch.context() as patch:
        patch.setattr(built_wheels, "run_guarded", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build(str(source), environments.wheels_folder())
    assert wheels_in(environments.wheels_folder()) == []
    killed = environments.wheels_folder() / "0123456789abcdef.new"
    killed.mkdir()
    assert environments.prune(3600.0) == []
    environments.prune(0.0)
    assert not killed.exists()


_BUILD = """
import sys
from pathlib import Path
from fairlap.interrupts import interrupted_once
from fairlap.launch.packages.built_wheels import built_wheel
from fairlap.launch.packages.interpreters import own_interpreter

requirement, folder = sys.argv[1:]
with interrupted_once():
    built_wheel(requirement, (), Path(sys.executable), own_interpreter(), Path(folder))
"""


@pytest.mark.slow
def test_sigterm_ends_a_slow_build_and_all_that_it_started(source: Path, tmp_path: Path) -> None:
    """The backend of a build is a child of pip's, which kept running for as long as it took."""
    (source / "backend.py").write_text(
        "import os, time\n\n\ndef build_wheel(*_):\n"
        f"    open({str(tmp_path / 'started')!r}, 'w').write(str(os.getpid()))\n    time.sleep(300)\n"
    )
    [name] = with_pinned_origins([contestant_named(f"python:call=hotpkg.fn:with={source}")])
    wheels, path = tmp_path / "wheels", os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-c", _BUILD, name.release, str(wheels)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL) as building:
        while not (text := started_in(tmp_path)):
            assert building.poll() is None
            time.sleep(0.02)
        building.send_signal(signal.SIGTERM)
        building.wait(120)  # of the 300 s that it sleeps
    assert not lives(int(text))
    assert wheels_in(wheels) == []


def started_in(folder: Path) -> str:
    file = folder / "started"
    return file.read_text() if file.is_file() else ""


def test_a_folder_that_changed_after_the_plan_is_not_built(source: Path, tmp_path: Path) -> None:
    [name] = with_pinned_origins([contestant_named(f"python:call=hotpkg.fn:with={source}")])
    (source / "steps").write_text("5\n")
    with pytest.raises(FairlapError) as caught:
        built_wheel(name.release, (), Path(sys.executable), own_interpreter(), tmp_path / "wheels")
    assert caught.value.code == "E_SOURCE_CHANGED"
    assert not (tmp_path / "builds").exists()
    assert wheels_in(tmp_path / "wheels") == []
