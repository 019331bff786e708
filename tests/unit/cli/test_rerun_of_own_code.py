"""A rerun of callables finds their module where it was, and says which of their code changed since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import fairlap, refusal

RACE = ["compare", "callable", "--on", "python:call=old_kernels.sums,python:call=os.getcwd", "--conditions", "as-found"]
RACE += ["--threads", "1", "--seconds", "0.02", "--blocks", "1", "--quiet"]


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a module and one beside it that it imports, and race it from elsewhere by PYTHONPATH."""
    folder, elsewhere = tmp_path / "code", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "old_kernels.py").write_text("import old_parts\ndef sums(): return old_parts.total(range(10))\n")
    (folder / "old_parts.py").write_text("total = sum\n")
    (folder / "unrelated.py").write_text("")
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.chdir(elsewhere)
    with monkeypatch.context() as searched:
        searched.setenv("PYTHONPATH", str(folder), prepend=":")
        assert fairlap(*RACE).returncode == 0
    return folder


def test_a_module_is_found_where_it_was_without_the_search_path_of_then(code: Path) -> None:
    again = fairlap("rerun", "last", "--quiet")
    assert again.returncode == 0, again.stderr
    assert "failed" not in again.stdout
    assert "W_CODE_CHANGED" not in again.stderr
    assert fairlap("rerun", "last", "--quiet").returncode == 0


def test_code_that_changed_is_named_once_and_then_is_that_of_the_new_run(code: Path) -> None:
    (code / "unrelated.py").write_text("changed = True\n")
    assert "W_CODE_CHANGED" not in fairlap("rerun", "last", "--quiet").stderr
    (code / "old_parts.py").write_text("total = max\n")
    changed = fairlap("rerun", "last", "--quiet")
    assert changed.returncode == 0, changed.stderr
    [line] = [line for line in changed.stderr.splitlines() if "W_CODE_CHANGED" in line]
    assert "old_parts.py" in line
    assert "old_kernels.py" not in line
    assert "W_CODE_CHANGED" not in fairlap("rerun", "last", "--quiet").stderr


def test_a_module_that_is_gone_is_one_line_and_found_again_in_the_current_folder(code: Path) -> None:
    shutil.move(code, code.with_name("moved"))
    gone = refusal("rerun", "last")
    assert gone.code == "E_MODULE"
    assert str(code) in str(gone)
    found = fairlap("rerun", "last", "--trust", "--quiet", cwd=code.with_name("moved"))
    assert found.returncode == 0, found.stderr
    assert "failed" not in found.stdout


def test_a_run_is_not_resumed_with_other_code(code: Path) -> None:
    (code / "old_parts.py").write_text("total = max\n")
    refused = refusal("compare", "--resume", "last", "--budget", "1s")
    assert refused.code == "E_RESUME"
    assert "old_parts.py" in str(refused)
