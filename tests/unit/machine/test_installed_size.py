"""The size on disk of installed packages, held against the files of ones made here."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from fairlap.frameworks.contract import Framework
from fairlap.frameworks.programs.command import PROGRAM, CommandLine
from fairlap.machine.files import installed_size
from fairlap.machine.files.installed_size import installed_bytes


@pytest.fixture(autouse=True)
def forgotten() -> None:
    installed_size._needs.cache_clear()
    installed_size._size_of.cache_clear()


def install(site: Path, name: str, sizes: tuple[int | str, ...], requires: tuple[str, ...] = ()) -> None:
    """Write the metadata that an installer leaves."""
    folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
    rows = "".join(f'"{name}/a, {at}.py",sha256=x,{size}\n' for at, size in enumerate(sizes))
    (folder / "RECORD").write_text(rows)


def test_it_is_that_of_a_package_with_those_that_it_needs_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    install(tmp_path, "made-tool", (100, "", 20), ("Made.Base>=1", "made_base", 'made-other; extra == "more"', "gone"))
    install(tmp_path, "made-base", (3,), ('made-tool; python_version >= "3"',))
    install(tmp_path, "made-other", (5000,))
    assert installed_bytes(["made-tool==1.0"]) == 123
    assert installed_bytes(["made-tool[more]", "Made_Base"]) == 123
    assert installed_bytes(["not-there", "", "made-other"]) == 5000
    assert installed_bytes([]) == 0


def test_that_of_a_framework_is_of_its_first_package_on_any_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Made(Framework):
        packages = ("made-cpu==1.0", "made-converter==1.0")
        packages_on = {"cuda": ("made-cuda==1.0",)}  # noqa: RUF012

    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    install(tmp_path, "made-cuda", (7,))
    install(tmp_path, "made-converter", (1000,))
    assert Made.installed_bytes({}) == 7


def test_that_of_a_command_is_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(bytes(1234))
    assert CommandLine.installed_bytes({PROGRAM: str(tmp_path / "program")}) == 1234
    assert CommandLine.installed_bytes({PROGRAM: str(tmp_path / "gone")}) == 0


def test_that_of_numpy_is_near_what_its_folders_hold() -> None:
    folder = Path(np.__file__).parent
    places = [folder, *folder.parent.glob("numpy.libs")]
    held = sum(
        file.stat().st_size
        for place in places
        for file in place.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )
    assert installed_bytes(["numpy"]) == pytest.approx(held, rel=0.02)
