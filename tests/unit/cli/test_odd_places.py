"""A folder whose name is not UTF-8, a user without a home, a home that cannot be written: an answer or one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import error_code, fairlap, refusal
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import own_folders
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import allow, is_allowed, reach_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest

RACE = ["compare", "callable", "--on", "python:call=os.getpid", "--blocks", "1", "--seconds", "0.01", "--quiet"]
OF_NOBODY = 61234

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user that is not known")


@pytest.mark.slow
def test_commands_run_in_a_folder_whose_name_is_not_utf8(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 alone")
    (folder / "m.onnx").write_bytes(b"\x08\x07")
    for words in ([*RACE, "-o", "x.json"], ["list", "models"], ["bundle", "x.json", "-o", "b.fairlap", "--no-page"]):
        done = fairlap(*words, cwd=folder)
        assert "Traceback" not in done.stderr
    for words in (["list", "routes", "m.onnx"], ["compare", "m.onnx", "--on", "onnxruntime", "--quiet"]):
        done = fairlap(*words, cwd=folder)
        assert done.returncode == 2
        assert error_code(done) == "E_REQUEST"


def test_a_user_without_a_home_is_told_which_variables_help(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FAIRLAP_STORE", "FAIRLAP_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    for words in (["runs"], ["show", "last"], ["compare", "mlp", "--on", "torch"], ["envs"]):
        error = refusal(*words)
        assert error.code == "E_HOME"
    assert own_folders() == []
    monkeypatch.setenv("FAIRLAP_CACHE", "/tmp/x")
    assert Path("/tmp/x/work") in own_folders()


def test_a_user_without_a_home_races_own_programs_and_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    plan = plan_of(RaceRequest(contestants=Contestants("command:true"), models=("callable",), blocks=1))
    allow(plan)
    assert reach_of(plan)
    assert not is_allowed(reach_of(plan))


def test_a_home_folder_that_does_not_exist_is_refused_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FAIRLAP_STORE", "FAIRLAP_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "misspelt"))
    for words in (["runs"], ["show", "last"], ["compare", "mlp", "--on", "torch"]):
        assert refusal(*words).code == "E_HOME"
    assert not (tmp_path / "misspelt").exists()


@needs_root
def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path: Path) -> None:
    program = "import os, pathlib; from fairlap.machine.files.private_files import make_cache_folder as m;"
    program += f"os.setgid({OF_NOBODY}); os.setuid({OF_NOBODY}); m(pathlib.Path('/fairlap-cache/work'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "[E_CACHE]" not in done.stderr  # the code is not in the text of an error
    assert done.stderr.splitlines()[-1].endswith(
        "the cache cannot be written: /fairlap-cache: Permission denied; set FAIRLAP_CACHE to a folder elsewhere"
    )
    make_cache_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
