"""The action: its steps call fairlap with options that exist, and nothing from outside is pasted into a script."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fairlap.cli.commands.decisions.pull_request import command

yaml = pytest.importorskip("yaml")
TOP = Path(__file__).parents[3]
ACTION: dict[str, Any] = yaml.safe_load((TOP / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
INSTALL, RACE, GATE = (
    next(step for step in STEPS if step["name"] == name) for name in ("Install fairlap", "Race", "Gate")
)
WORKFLOWS = (*(TOP / ".github/workflows").glob("*.yml"), TOP / "action.yml", TOP / "docs/how-to/gate-pull-requests.md")
FAKE = """#!/bin/sh
shift 3
for word in "$@"; do printf '%s\\n' "$word"; done > words
exit 1
"""

pytestmark = pytest.mark.sanitized


def run(step: dict[str, Any], folder: Path, **variables: str) -> tuple[int, list[str]]:
    """Run the step's script, and return its exit status and the words that fairlap got."""
    install(folder / "temp/fairlap-environment/bin/python", FAKE)
    done = shell(step, folder, folder / "temp", **variables)
    words = folder / "words"
    return done.returncode, words.read_text().splitlines() if words.exists() else []


def install(interpreter: Path, script: str) -> None:
    interpreter.parent.mkdir(parents=True, exist_ok=True)
    interpreter.write_text(script)
    interpreter.chmod(interpreter.stat().st_mode | stat.S_IXUSR)


def shell(step: dict[str, Any], folder: Path, temporary: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    given = dict.fromkeys(step["env"], "")
    paths = {"GITHUB_OUTPUT": str(temporary.parent / "output"), "RUNNER_TEMP": str(temporary)}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    environment = {**os.environ, **given, **paths, **variables}
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


def outputs(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"COMMAND": "./bench 'a b'; $(touch hacked)"}, {"run_command": "./bench 'a b'; $(touch hacked)"}),
        ({"COMMAND": "./bench", "REPORTED": "pyperf:sum"}, {"reported": "pyperf:sum"}),
        ({"CALL": "bench.run", "PREPARE": "make"}, {"call": "bench.run", "prepared_by": "make"}),
        ({"RUN": "race.json", "BASELINE": "old"}, {"run_name": "race.json", "baseline": "old"}),
        ({"CALL": "a.b", "STRICT": "true", "SAME_OUTPUT": "true"}, {"strict": True, "same_output": True}),
        (
            {"CALL": "a.b", "THREADS": "2", "BUDGET": "2m", "BASE": "main"},
            {"threads": 2, "budget": 120, "base": "main"},
        ),
    ],
)
def test_inputs_become_options_and_the_status_is_kept_for_the_gate(
    tmp_path: Path, variables: dict[str, str], expected: dict[str, object]
) -> None:
    status, words = run(RACE, tmp_path, NAME="my bench", MAX_SLOWDOWN="3%", **variables)
    assert status == 0
    assert words[0] == "pull-request"
    given = command.make_context("pull-request", words[1:]).params
    assert {name: given[name] for name in expected} == expected
    assert (given["name"], float(given["max_slowdown"]), given["comments"]) == ("my bench", 0.03, False)
    assert outputs(tmp_path) == {"status": "1", "files": f"{tmp_path}/temp/fairlap my bench"}
    assert not (tmp_path / "hacked").exists()


SHADOWED = ("fairlap/__init__.py", "fairlap/__main__.py", "msgspec.py", "click/__init__.py", "sitecustomize.py")


def hostile_checkout(folder: Path) -> Path:
    checkout = folder / "checkout"
    for name in SHADOWED:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(f"open({str(folder / 'ran')!r}, 'a').write(__name__)\n")
    return checkout


@pytest.mark.slow_but("variables0")
@pytest.mark.parametrize("variables", [{}, {"PYTHONPATH": "."}])
def test_no_module_of_the_checkout_runs_in_the_gate(tmp_path: Path, variables: dict[str, str]) -> None:
    checkout = hostile_checkout(tmp_path)
    subprocess.run([sys.executable, "-m", "fairlap"], cwd=checkout, check=False)
    assert (tmp_path / "ran").exists()  # so it would run
    (tmp_path / "ran").unlink()
    environment = tmp_path / "temp/fairlap-environment/bin/python"
    install(environment, f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    done = shell(RACE, checkout, tmp_path / "temp", NAME="x", MAX_SLOWDOWN="3%", RUN="missing.json", **variables)
    assert "[E_REQUEST]" in done.stderr  # fairlap itself ran
    assert outputs(tmp_path)["status"] == "3"
    assert not (tmp_path / "ran").exists()


def test_the_gate_does_not_use_packages_that_the_job_has_installed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f'#!/bin/sh\necho "$PWD $*" >> {log}\n'
    install(tmp_path / "python", script)
    install(tmp_path / "temp/fairlap-environment/bin/python", script)
    checkout = hostile_checkout(tmp_path)
    assert shell(INSTALL, checkout, tmp_path / "temp", PYTHON=str(tmp_path / "python")).returncode == 0
    made, installed = log.read_text().splitlines()
    assert made.split()[:4] == [str(tmp_path / "temp"), "-I", "-m", "venv"]
    assert {"-I", "--ignore-installed"} <= set(installed.split())


@pytest.mark.parametrize("name", ["x\nstatus=0", "", "a--b", "$(touch hacked)", "x\r", "../../x"])
def test_a_name_cannot_write_outputs_of_its_own(tmp_path: Path, name: str) -> None:
    assert run(RACE, tmp_path, NAME=name, MAX_SLOWDOWN="3%", CALL="a.b") == (3, [])
    assert not (tmp_path / "output").exists()


def test_actions_of_others_are_pinned_by_commit_and_have_no_token_in_the_job_that_races() -> None:
    used = [each for file in WORKFLOWS for each in re.findall(r"uses: (\S+)", file.read_text())]
    assert len(used) > 8
    assert [each for each in used if not re.search(r"@[0-9a-f]{40}$", each) and "OWNER/fairlap" not in each] == []
    assert not any("TOKEN" in name for step in STEPS for name in step.get("env", {}))


@pytest.mark.parametrize(("variables", "status"), [({"STATUS": "1"}, 1), ({"STATUS": "0"}, 0), ({}, 3)])
def test_the_job_ends_with_the_status_of_the_race(tmp_path: Path, variables: dict[str, str], status: int) -> None:
    assert run(GATE, tmp_path, **variables)[0] == status


def test_scripts_get_what_comes_from_outside_as_variables_only() -> None:
    assert all("${{" not in step.get("run", "") for step in STEPS)


def test_every_input_is_used_and_documented() -> None:
    text = (TOP / "action.yml").read_text()
    page = (TOP / "docs/how-to/gate-pull-requests.md").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    assert {name for name in ACTION["inputs"] if f"`{name}`" not in page} == set()
