"""A contestant in a sandbox computes and reaches nothing, its row says so, and secrets reach no contestant."""

from __future__ import annotations

import json
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest
from command_line import here, refusal
from fairlap.machine.programs.sandbox import has_seccomp, landlock_version
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.render.plan_command import command_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest

sandboxed = pytest.mark.skipif(
    landlock_version() < 3 or not has_seccomp(), reason="needs Linux 6.2 or later with Landlock and seccomp"
)
CALLABLES = """
import ctypes, os, pathlib, socket, threading, time
library = ctypes.CDLL(None)
asked, read_by_others = [], []

@ctypes.CFUNCTYPE(None, ctypes.c_int)
def read_here(_):
    asked.append(1)
    try:
        read_by_others.append(pathlib.Path({secret!r}).read_text())
    except OSError:
        pass

def reads_in_another_thread():
    library.signal(12, read_here)
    for thread in map(int, os.listdir("/proc/self/task")):
        if thread != threading.get_native_id():
            before, until_s = len(asked), time.monotonic() + 2.0
            library.tgkill(os.getpid(), thread, 12)
            while len(asked) == before and time.monotonic() < until_s:
                time.sleep(0.01)
    if not read_by_others:
        raise SystemExit("nothing was read")

def computes():
    return sum(range(1000))

def reads():
    pathlib.Path({secret!r}).read_text()

def writes():
    pathlib.Path({secret!r}).with_name("written").touch()

def connects():
    socket.create_connection(("127.0.0.1", {port}), 1)

def has(*names):
    if missing := [name for name in names if name not in os.environ]:
        raise SystemExit(f"{{missing}}")

def has_token():
    has("GITHUB_TOKEN")

def has_plain():
    has("PLAIN_SETTING")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder the current one, with a secret outside of it."""
    found = tmp_path / "work"
    found.mkdir()
    (tmp_path / "secret").write_text("secret")
    monkeypatch.chdir(found)
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    return found


def rows(folder: Path, *arguments: str, port: int = 1) -> dict[str, dict[str, Any]]:
    (folder / "spy.py").write_text(CALLABLES.format(secret=str(folder.parent / "secret"), port=port))
    file = folder / "race.json"
    here("compare", "callable", *arguments, "--blocks", "1", "--seconds", "0.02", "-o", str(file))
    return {row["contestant"]: row for row in json.loads(file.read_text())["rows"]}


def named(*functions: str, options: str = "") -> str:
    return ",".join(f"python:call=spy.{function}{options}" for function in functions)


@pytest.mark.slow_but("arguments1")
@sandboxed
@pytest.mark.parametrize(("arguments", "options"), [(["--sandbox"], ""), ([], ":sandbox=on")])
def test_a_contestant_in_a_sandbox_computes_and_reaches_nothing(
    folder: Path, arguments: list[str], options: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        on = named("computes", "reads", "reads_in_another_thread", "writes", "connects", options=options)
        found = rows(folder, "--on", on, *arguments, port=server.getsockname()[1])
    outcomes = {name.split(".")[1].split(":")[0]: row["outcome"] for name, row in found.items()}
    tried = ("reads", "reads_in_another_thread", "writes", "connects")
    assert outcomes == {"computes": "finished"} | dict.fromkeys(tried, "failed")
    assert not (folder.parent / "written").exists()
    assert "Landlock" in found[named("computes", options=options)]["settings"]["sandbox"]


@sandboxed
@pytest.mark.slow
def test_built_in_models_that_share_code_with_others_run_in_a_sandbox(folder: Path) -> None:
    pytest.importorskip("torch", reason="`make test-slow` installs it and runs this")
    file = folder / "race.json"
    models = ("empty", "characters", "digits")
    here("compare", *models, "--on", "torch", "--sandbox", "--blocks", "1", "--seconds", "0.02", "-o", str(file))
    assert [row["outcome"] for row in json.loads(file.read_text())["rows"]] == 3 * ["finished"]


@pytest.mark.slow
def test_without_a_sandbox_the_row_has_none(folder: Path) -> None:
    found = rows(folder, "--on", named("computes", "reads"))
    assert {row["outcome"] for row in found.values()} == {"finished"}
    assert all("sandbox" not in row["settings"] for row in found.values())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--on", "http://127.0.0.1:1/v2/models/x", "--sandbox"],
        ["--on", "./program,torch", "--sandbox"],
        ["--on", "torch:over=http:sandbox=on"],
        ["--on", "torch", "--processes", "2", "--batch", "2", "--sandbox"],
    ],
)
def test_what_needs_a_network_or_does_not_confine_itself_is_refused(folder: Path, arguments: list[str]) -> None:
    assert refusal("compare", "mlp", *arguments).code == "E_SANDBOX"


def test_no_command_runs_outside_for_the_output_of_all(folder: Path) -> None:
    run = f"a=touch {folder / 'ran'}"
    refused = refusal("compare", "--command", run, "--command", "b=true", "--same-output", "--sandbox")
    assert refused.code == "E_SANDBOX"
    assert not (folder / "ran").exists()


def test_secrets_reach_a_contestant_only_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "the value")
    monkeypatch.setenv("PLAIN_SETTING", "1")
    on = named("has_token", "has_plain")
    outcomes = [row["outcome"] for row in rows(folder, "--on", on).values()]
    assert sorted(outcomes) == ["failed", "finished"]
    passed = rows(folder, "--on", on, "--pass-env", "GITHUB_TOKEN")
    assert {row["outcome"] for row in passed.values()} == {"finished"}
    text = (folder / "race.json").read_text()
    assert "the value" not in text
    assert '"GITHUB_TOKEN"' in text


def test_the_command_of_a_plan_has_both() -> None:
    request = RaceRequest(
        models=("mlp",), contestants=Contestants("torch"), blocks=6, seed=1, sandbox=True, pass_env=("HF_TOKEN",)
    )
    words = shlex.split(command_of(plan_of(request)))
    assert {"--sandbox", "--pass-env", "HF_TOKEN"} <= {*words}


def test_a_saved_plan_does_not_pass_a_secret_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "the value")
    (folder / "spy.py").write_text(CALLABLES.format(secret="", port=1))
    options = ["--on", named("has_token", "computes"), "--blocks", "1", "--seconds", "0.02"]
    here("compare", "callable", *options, "--pass-env", "GITHUB_TOKEN", "--dry-run", "--save-plan", "plan.json")
    refused = here("compare", "--plan", "plan.json", "--no-store")
    assert (refused.returncode, "E_PASS_ENV" in refused.stderr) == (2, True)
    raced = here("compare", "--plan", "plan.json", "--no-store", "--pass-env", "GITHUB_TOKEN", "--json")
    assert {row["outcome"] for row in json.loads(raced.stdout)["rows"]} == {"finished"}
