"""What is carried to a machine without network is unpacked there, and only where it is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from gpu.proof import kit
from gpu.proof.machine import ROOT
from packaging.requirements import Requirement

_OWN = f"cp{sys.version_info.major}{sys.version_info.minor}"


def wheel(folder: Path, name: str, tags: str) -> None:
    (folder / "wheels").mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "wheels" / f"{name}-1.0-{tags}.whl", "w") as content:
        content.writestr(f"{name}.py", "carried = True\n")
        content.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\n")


def test_only_packages_that_are_not_installed_are_taken_and_only_for_this_python(tmp_path: Path) -> None:
    wheel(tmp_path, "never_heard_of", "py3-none-any")
    wheel(tmp_path, "compiled_for_us", f"{_OWN}-{_OWN}-manylinux_2_28_x86_64")
    wheel(tmp_path, "stable_interface", "cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64")
    wheel(tmp_path, "compiled_for_others", "cp27-cp27m-manylinux_2_28_x86_64")
    wheel(tmp_path, "numpy", "py3-none-any")
    said: list[str] = []
    [folder] = kit.unpack_missing(tmp_path, said.append)
    assert sorted(path.name for path in Path(folder).glob("*.py")) == [
        "compiled_for_us.py",
        "never_heard_of.py",
        "stable_interface.py",
    ]
    assert kit.unpack_missing(tmp_path, said.append) == [folder]
    assert "numpy" not in said[0]


def test_without_a_kit_nothing_is_put_on_the_path(tmp_path: Path) -> None:
    assert kit.unpack_missing(tmp_path / "none", lambda _: None) == []


def test_wheels_are_fetched_for_the_python_of_the_other_machine(tmp_path: Path) -> None:
    command = kit.download_command("3.12", tmp_path, ["cupy-cuda13x"])
    assert command[command.index("--python-version") + 1] == "3.12"
    assert {*kit.NEEDED, "cupy-cuda13x"} <= set(command)
    assert "manylinux_2_28_x86_64" in command


def test_the_kit_has_all_that_fairlap_and_its_tests_need_without_a_framework() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=\[]", each)[0] for each in project["dependencies"]}
    assert needed | {"hypothesis", "pybind11", "pytest", "pytest-timeout"} == set(kit.NEEDED)


def test_what_the_machine_has_does_not_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "download_command", lambda *_: [sys.executable, "-c", ""])
    for name in ("numpy", "scipy", "never_heard_of"):
        wheel(tmp_path, name, "py3-none-any")
    kept = kit.fetch("3.12", tmp_path, (), ("numpy", "scipy", "Never.Heard-of"))
    assert kept == []
    wheel(tmp_path, "numpy", "py3-none-any")
    assert [each.name for each in kit.fetch("3.12", tmp_path, (), ("none",))] == ["numpy-1.0-py3-none-any.whl"]


def test_what_travels_is_less_than_a_lent_machine_takes_and_more_is_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository_mib = kit.travels_mib([])
    assert 1 < repository_mib < kit.MOST_MIB - 20  # what the kit has without NumPy and SciPy is below 20 MiB
    monkeypatch.setattr(kit, "download_command", lambda *_: [sys.executable, "-c", ""])
    wheel(tmp_path, "large", "py3-none-any")
    monkeypatch.setattr(kit, "MOST_MIB", repository_mib)
    assert kit.main(["--to", str(tmp_path)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_neither_the_machine_nor_the_kit_has_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kit.missing([]) == []
    (tmp_path / "msgspec.py").touch()
    monkeypatch.setattr(sys, "path", [])
    assert set(kit.missing([str(tmp_path)])) == set(kit.NEEDED) - {"msgspec"}


def closure(names: tuple[str, ...]) -> set[str]:
    """Return these packages and what they depend on, as they are installed here."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        found.add(name)
        wanted = map(Requirement, metadata.requires(name) or ())
        left += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


@pytest.mark.slow
def test_where_nothing_else_is_installed_every_test_of_a_gpu_is_collected(tmp_path: Path) -> None:
    """On a bare machine all of part 1 had failed at collection, for want of hypothesis."""
    for name in closure(kit.NEEDED):
        for file in metadata.files(name) or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (tmp_path / top).exists():
                (tmp_path / top).symlink_to(Path(str(file.locate())).parents[len(file.parts) - 1] / top)
    run = subprocess.run(
        [sys.executable, "-S", "-m", "pytest", "--collect-only", "-q", "tests/gpu", "-p", "no:cacheprovider"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(tmp_path)])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert sum(map(int, re.findall(r": (\d+)$", run.stdout, re.MULTILINE))) > 80


def test_what_pip_cannot_fetch_is_one_line_and_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit(3)"]
    monkeypatch.setattr(kit, "download_command", lambda *_: command)
    assert kit.main(["--to", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    monkeypatch.setattr(kit, "download_command", lambda *_: [*command[:2], ""])
    wheel(tmp_path, "fetched", "py3-none-any")
    assert kit.main(["--to", str(tmp_path)]) == 0
    assert "1 wheels" in capsys.readouterr().out
