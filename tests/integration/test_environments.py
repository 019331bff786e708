"""Environments of contestants: created once, shared, never incomplete, with fairlap's own code inside."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_line import output
from fairlap.errors import InvalidRequest
from fairlap.launch import environments as envs

pytestmark = pytest.mark.sanitized


def wheel(folder: Path, name: str, version: str) -> Path:
    """Write the smallest package that pip installs."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def printed_by(python: Path, code: str) -> str:
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    return (run.stdout or run.stderr).strip()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_ENVS", str(tmp_path / "envs"))


@pytest.mark.thorough
def test_an_environment_holds_what_was_asked_for_and_fairlap_and_nothing_of_ours(tmp_path: Path) -> None:
    reports: list[str] = []
    with envs.environment_with((str(wheel(tmp_path, "tiny_framework", "1.5")),), reports.append) as made:
        assert printed_by(made.python, "import tiny_framework; print(tiny_framework.VERSION)") == "1.5"
        assert printed_by(made.python, "import fairlap.bench_models.mlp.spec, numpy, msgspec") == ""
        assert "No module named 'pytest'" in printed_by(made.python, "import pytest")
        with pytest.raises(InvalidRequest, match="in use"):
            envs.remove_environment(made.key)
    assert len(reports) == 1
    assert [each.key for each in envs.environments()] == [made.key]
    with envs.environment_with(made.requirements, reports.append) as again:
        assert again.key == made.key
        with envs.environment_with(made.requirements, reports.append) as another:  # as two variants in one race do
            assert another.key == made.key
    assert len(reports) == 1  # made once
    (made.folder / "made-from.json").unlink()  # as a killed maker leaves it
    assert [each.state for each in envs.environments()] == ["incomplete"]
    with envs.environment_with(made.requirements, reports.append):
        pass
    assert len(reports) == 2
    envs.remove_environment(made.key)
    assert envs.environments() == []
    assert not made.folder.exists()


@pytest.mark.slow
def test_two_races_that_want_the_same_environment_make_it_once(tmp_path: Path) -> None:
    requirement = str(wheel(tmp_path, "tiny_framework", "2.0"))
    code = (
        "from fairlap.launch.environments import environment_with\n"
        f"with environment_with(({requirement!r},), print) as made: print(made.key)"
    )
    racers = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [racer.communicate(timeout=110)[0].strip().splitlines() for racer in racers]
    assert sorted(len(lines) for lines in printed) == [1, 2]
    assert printed[0][-1] == printed[1][-1]


@pytest.mark.slow
def test_a_failed_installation_gives_pips_reason_and_leaves_nothing_half_made(tmp_path: Path) -> None:
    missing = str(tmp_path / "absent-1.0-py3-none-any.whl")
    with (
        pytest.raises(envs.InstallFailed, match="absent") as caught,
        envs.environment_with((missing,), lambda _: None),
    ):
        pass
    assert caught.value.code == "E_INSTALL"
    assert "\n" not in str(caught.value)
    assert envs.environments() == []
    assert not list((tmp_path / "envs").glob("*/bin"))


def test_an_installation_that_was_killed_is_listed_with_its_size_and_can_be_removed(tmp_path: Path) -> None:
    key, killed = envs.key_of(("torch==2.13.0",)), tmp_path / "killed"
    code = (
        "import os, subprocess\n"
        "from fairlap.launch import environments as envs\n"
        "def install(command, *further):\n"
        "    (envs.environments_folder() / envs.key_of(('torch==2.13.0',)) / 'partial').write_bytes(bytes(5000))\n"
        f"    open({str(killed)!r}, 'w').close()\n"
        "    os.kill(os.getpid(), 9)\n"
        "envs._run = install\n"
        "with envs.environment_with(('torch==2.13.0',), print): pass"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert killed.exists()
    [listed] = json.loads(output("envs", "--json"))["environments"]
    assert (listed["key"], listed["state"], listed["made"]) == (key, "incomplete", None)
    assert listed["requirements"] == ["torch==2.13.0"]
    assert 5000 <= listed["size_bytes"] < 6000
    assert "incomplete" in output("envs")
    with envs._lock(key, fcntl.LOCK_EX):
        assert [each.state for each in envs.environments()] == ["being made"]
    output("envs", "remove", key)
    assert json.loads(output("envs", "--json"))["environments"] == []
    assert not (tmp_path / "envs" / key).exists()


def test_the_key_differs_between_versions() -> None:
    assert envs.key_of(("torch==2.13.0",)) != envs.key_of(("torch==2.12.0",))
    assert envs.key_of(("a", "b")) == envs.key_of(("b", "a"))


@pytest.mark.parametrize("key", ["nothing-there", "../elsewhere", ""])
def test_only_environments_can_be_removed(key: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(repr(key))):
        envs.remove_environment(key)


def test_what_pip_unpacks_is_below_the_environment_and_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = []

    def interrupted(_command: list[str], _folder: Path, environment: dict[str, str], **_options: object) -> None:
        temporary.append(Path(environment["TMPDIR"]))
        (temporary[-1] / "pip-unpack").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(envs, "run_guarded", interrupted)
    with pytest.raises(KeyboardInterrupt), envs.environment_with(("a==1",), lambda _: None):
        pass
    assert all(path.is_relative_to(tmp_path / "envs") and not path.exists() for path in temporary)
    assert len(temporary) == 1
