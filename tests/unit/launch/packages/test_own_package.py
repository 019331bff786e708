"""fairlap for another Python: a wheel of its source, built once, or one plain line about what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from fairlap.errors import FairlapError
from fairlap.launch import environments
from fairlap.launch.packages import own_package
from fairlap.launch.packages.interpreters import Interpreter, own_interpreter
from fairlap.launch.packages.making import Making
from wheels import write_source

pytestmark = pytest.mark.sanitized

OTHER = Interpreter("/nowhere/python3.99", (3, 99, 0), "/nowhere")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CACHE", "ENVS"):
        monkeypatch.setenv(f"FAIRLAP_{name}", str(tmp_path / name))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a project with the parts of fairlap's, from which this process seems to run, and a small build."""
    folder = write_source(tmp_path / "checkout", steps=7)
    of_build = ("backend.py", "hotpkg.py.in", "steps")
    monkeypatch.setattr(own_package, "PARTS", (*own_package.PARTS, *of_build))
    for part in own_package.PARTS:
        path = folder / part
        if path.exists():
            continue
        if part.isupper() or "." in part:
            path.write_text(part)
        else:
            path.mkdir()
    package = folder / "python/fairlap"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_native.so").write_bytes(b"for this Python")
    (package / "bench_models").symlink_to("../../bench_models")
    (folder / "build").mkdir()
    (folder / "build/large").write_text("")
    monkeypatch.setattr(own_package, "_package_folder", lambda: package)
    own_package.tree_of.cache_clear()
    return folder


def installed_from(folder: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip records an installation from a folder (PEP 610)."""

    class FromFolder(Distribution):
        def read_text(self, filename: str) -> str | None:
            return json.dumps({"url": folder.as_uri(), "dir_info": {}}) if filename == "direct_url.json" else None

        def locate_file(self, path: object) -> Path:
            return package / str(path)

    monkeypatch.setattr(own_package, "_package_folder", lambda: package)
    monkeypatch.setattr(Distribution, "from_name", lambda _name: FromFolder())


def test_a_checkout_is_copied_without_builds_and_links_are_kept(checkout: Path, tmp_path: Path) -> None:
    assert own_package.own_source() == checkout
    own_package.copy_parts(checkout, tmp_path / "copy")
    assert not (tmp_path / "copy/build").exists()
    assert not (tmp_path / "copy/python/fairlap/_native.so").exists()
    assert (tmp_path / "copy/python/fairlap/bench_models").is_symlink()


@pytest.mark.parametrize(("file", "changes"), [("cpp/a.cpp", True), ("python/a.py", True), ("build/large", False)])
def test_an_environment_depends_on_what_is_built_and_on_nothing_else(
    checkout: Path, file: str, changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Making, "interpreter", OTHER)
    before = environments.key_of(("torch==2",), Making("3.99"))
    (checkout / file).write_text("changed")
    own_package.tree_of.cache_clear()
    assert (environments.key_of(("torch==2",), Making("3.99")) != before) == changes


@pytest.mark.slow
def test_the_wheel_of_a_source_is_built_once(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIST_OF_BUILDS", str(tmp_path / "builds"))
    for _ in range(2):
        wheel = own_package.own_wheel(checkout, Path(sys.executable), own_interpreter(), tmp_path / "wheels")
    assert "hotpkg.py" in zipfile.ZipFile(wheel).namelist()
    assert (tmp_path / "builds").read_text().split() == ["built"]


def test_a_source_that_it_was_installed_from_is_taken_only_as_it_was_then(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages/fairlap"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    installed_from(checkout, package, monkeypatch)
    assert own_package.own_source() == checkout
    (checkout / "python/fairlap/__init__.py").write_text("changed = True\n")
    with pytest.raises(FairlapError) as caught:
        own_package.own_source()
    assert caught.value.code == "E_BUILD"
    assert str(checkout) in str(caught.value)


def test_without_a_source_or_a_release_one_line_has_the_command_that_builds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "own_source", lambda: None)
    monkeypatch.setattr(environments, "run_guarded", lambda *_, **__: 1)
    (tmp_path / "ENVS").mkdir()
    (tmp_path / "ENVS/abc.log").write_text("ERROR: No matching distribution found\n")
    with pytest.raises(FairlapError) as caught:
        environments._own_package(["pip"], OTHER, subprocess.DEVNULL, tmp_path / "ENVS/abc", lambda _: None)
    assert caught.value.code == "E_INSTALL"
    assert "\n" not in str(caught.value)
    for word in (OTHER.path, OTHER.name, "pip wheel", "PIP_FIND_LINKS"):
        assert word in str(caught.value)
