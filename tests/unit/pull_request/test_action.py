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
from fairlap.cli.commands.pull_request import command

yaml = pytest.importorskip("yaml")
TOP = Path(__file__).parents[3]
ACTION: dict[str, Any] = yaml.safe_load((TOP / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
RACE, COMMENT, GATE = (next(step for step in STEPS if step["name"] == name) for name in ("Race", "Comment", "Gate"))
FAKE = """#!/bin/sh
shift 3
for word in "$@"; do printf '%s\\n' "$word"; done > words
exit 1
"""

pytestmark = pytest.mark.sanitized


def run(step: dict[str, Any], folder: Path, **variables: str) -> tuple[int, list[str]]:
    """The exit status of the step's script, and the words that fairlap got."""
    fake = folder / "python"
    fake.write_text(FAKE)
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    given = dict.fromkeys(step["env"], "")
    paths = {"PYTHON": str(fake), "GITHUB_OUTPUT": str(folder / "output"), "RUNNER_TEMP": str(folder / "temp")}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(shell, cwd=folder, env={**os.environ, **given, **paths, **variables}, check=False)
    words = folder / "words"
    return done.returncode, words.read_text().splitlines() if words.exists() else []


def outputs(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"COMMAND": "./bench 'a b'; $(touch hacked)"}, {"run_command": "./bench 'a b'; $(touch hacked)"}),
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


def test_a_comment_that_fails_or_was_never_written_fails_no_step(tmp_path: Path) -> None:
    assert run(COMMENT, tmp_path, FILES=str(tmp_path)) == (0, [])
    (tmp_path / "comment.md").touch()
    status, words = run(COMMENT, tmp_path, FILES=str(tmp_path), NAME="x", CHARTS="https://charts.test/1")
    given = command.make_context("pull-request", words[1:]).params
    assert (status, given["post"], given["charts"]) == (0, tmp_path / "comment.md", "https://charts.test/1")


@pytest.mark.parametrize("step", [RACE, COMMENT], ids=["race", "comment"])
def test_no_step_runs_modules_of_the_checkout(tmp_path: Path, step: dict[str, Any]) -> None:
    checkout, files = tmp_path / "checkout", tmp_path / "files"
    files.mkdir()
    (files / "comment.md").touch()
    for name in ("fairlap/__init__.py", "fairlap/__main__.py", "click/__init__.py", "msgspec.py"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    paths = {"GITHUB_OUTPUT": str(tmp_path / "output"), "RUNNER_TEMP": str(tmp_path), "PYTHON": sys.executable}
    given = {**dict.fromkeys(step["env"], ""), **paths, "NAME": "x", "FILES": str(files)}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(shell, cwd=checkout, env={**os.environ, **given}, check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert "[E_" in done.stderr  # fairlap itself ran, and has nothing to race or to post to
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("variables", "status"), [({"STATUS": "1"}, 1), ({"STATUS": "0"}, 0), ({}, 3)])
def test_the_job_ends_with_the_status_of_the_race(tmp_path: Path, variables: dict[str, str], status: int) -> None:
    assert run(GATE, tmp_path, **variables)[0] == status


def test_scripts_get_what_comes_from_outside_as_variables_only() -> None:
    assert all("${{" not in step.get("run", "") for step in STEPS)
    assert ["GITHUB_TOKEN" in step.get("env", {}) for step in STEPS].count(True) == 1


def test_every_input_is_used_and_documented() -> None:
    text = (TOP / "action.yml").read_text()
    page = (TOP / "docs/how-to/gate-pull-requests.md").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    assert {name for name in ACTION["inputs"] if f"`{name}`" not in page} == set()
