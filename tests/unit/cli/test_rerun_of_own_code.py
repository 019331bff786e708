"""A rerun of callables finds their module where it was, and says which of their code changed since."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path

import pytest
from command_line import fairlap, here, refusal

RACE = ["compare", "callable", "--on", "python:call=old_kernels.sums,python:call=os.getcwd", "--conditions", "as-found"]
RACE += ["--threads", "1", "--seconds", "0.02", "--blocks", "1", "--quiet"]


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a module and one beside it that it imports, and race it from elsewhere by PYTHONPATH."""
    folder = tmp_path_factory.mktemp("raced")
    for name in ("whole", "elsewhere", "store"):
        (folder / name).mkdir()
    (folder / "whole/old_kernels.py").write_text("import old_parts\ndef sums(): return old_parts.total(range(10))\n")
    (folder / "whole/old_parts.py").write_text("total = sum\n")
    (folder / "whole/unrelated.py").write_text("")
    shutil.copytree(folder / "whole", folder / "code")
    path = f"{folder / 'code'}:{os.environ.get('PYTHONPATH', '')}"
    store = folder / "store/runs.sqlite"
    done = fairlap(*RACE, cwd=folder / "elsewhere", FAIRLAP_STORE=store, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def code(raced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Restore the modules, and copy the store with the run for this test alone."""
    shutil.copytree(raced / "whole", raced / "code", dirs_exist_ok=True)
    shutil.copytree(raced / "store", tmp_path / "store")
    importlib.invalidate_caches()  # a test moves the modules
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "store/runs.sqlite"))
    monkeypatch.chdir(raced / "elsewhere")
    return raced / "code"


@pytest.mark.slow
def test_a_module_is_found_where_it_was_and_code_that_changed_is_named_once(code: Path) -> None:
    (code / "unrelated.py").write_text("changed = True\n")
    again = here("rerun", "last", "--quiet")
    assert again.returncode == 0, again.stderr
    assert "failed" not in again.stdout
    assert "W_CODE_CHANGED" not in again.stderr
    (code / "old_parts.py").write_text("total = max\n")
    changed = here("rerun", "last", "--quiet")
    assert changed.returncode == 0, changed.stderr
    [line] = [line for line in changed.stderr.splitlines() if "W_CODE_CHANGED" in line]
    assert "old_parts.py" in line
    assert "old_kernels.py" not in line
    assert "W_CODE_CHANGED" not in here("rerun", "last", "--quiet").stderr


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
