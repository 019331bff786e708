"""A race at several numbers of threads, on the command line, in a request file and from Python."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import fairlap as package
import pytest
from command_line import fairlap, invoke, output, refusal
from fairlap.race.planning.plan_file import load_plan
from fairlap.results.flat_row import columns_with_values
from fairlap.store.runs.run_file import load_run, load_run_file

TOP = Path(__file__).parents[3]
CALLABLES = TOP / "docs" / "examples" / "two_callables.py"
ON = "python:call=two_callables.sort_shuffled"
QUICK = ("--blocks", 2, "--seconds", "10ms", "--seed", 1)

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two threads need two cores")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(CALLABLES, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow
def test_a_race_of_two_threads_is_stored_shown_saved_and_run_again(folder: Path) -> None:
    files = [word for suffix in ("json", "csv", "md", "html", "plan") for word in _output(suffix)]
    done = fairlap("compare", "callable", "--on", ON, "--threads", "1,2", *QUICK, *files)
    assert done.returncode == 0, done.stderr
    assert "Scaling: callable" in done.stdout
    file = load_run_file(folder / "x.json")
    assert [(row.threads, row.scale, row.scaling) for row in file.rows] == [(1, "1 thread", ""), (2, "2 threads", "")]
    assert all(row.outcome == "finished" for row in file.rows)
    assert {len(block.cores) for block in file.plan.blocks} == {1, 2}
    assert {process.block: len(process.cores) for process in load_run(folder / "x.json").processes} == {
        block.number: file.plan.threads_of(file.plan.works[block.work]) for block in file.plan.blocks
    }
    header = (folder / "x.csv").read_text().splitlines()[0].replace(chr(34), "").split(",")
    assert {column.name for column in columns_with_values(file.rows) if column.group == "scaling"} <= set(header)
    assert "**Scaling**" in (folder / "x.md").read_text()
    assert 'id="scales"' in (folder / "x.html").read_text()
    assert "Scaling: callable" in output("show", "last")
    again = fairlap("compare", "--plan", folder / "x.plan", "--no-store", "--json")
    assert again.returncode == 0, again.stderr
    assert [row["threads"] for row in json.loads(again.stdout)["rows"]] == [1, 2]
    rerun = fairlap("rerun", "last")
    assert rerun.returncode == 0, rerun.stderr


def _output(suffix: str) -> tuple[str, str]:
    return ("--save-plan" if suffix == "plan" else "--output"), f"x.{suffix}"


@pytest.mark.slow
def test_a_request_file_and_python_name_the_same_scales(folder: Path) -> None:
    text = f'models = ["callable"]\ncontestants = ["{ON}"]\nthreads = [1, 2]\nblocks = 1\nseconds = "10ms"\n'
    (folder / "race.toml").write_text(text)
    output("compare", "race.toml", "--dry-run", "--save-plan", "plan.json")
    assert load_plan(folder / "plan.json").threads_of_works == (1, 2)
    rows = package.compare("callable", on=[ON], threads=(1, 2), blocks=1, seconds=0.01).rows
    assert [row.threads for row in rows] == [1, 2]


def test_a_dry_run_names_the_threads_of_each_work() -> None:
    lines = output("compare", "mlp", "--on", "torch", "--threads", "1,2", "--blocks", 1, "--dry-run").splitlines()
    assert [line.rpartition(" · ")[2] for line in lines[:2]] == ["1 thread", "2 threads"]
    assert "1 or 2 threads" in lines[2]


def test_ranks_that_cannot_share_are_refused_in_a_line() -> None:
    asked = ("compare", "mlp", "--on", "torch", "--threads", 1, "--mode", "train", "--blocks", 1)
    assert refusal(*asked, "--batch", 7, "--processes", "1,2").code == "E_SCALE"
    assert refusal(*asked, "--scaling", "weak").code == "E_SCALE"
    assert invoke(*asked, "--scaling", "loose").exit_code == 2
    assert invoke(*asked, "--processes", "two").exit_code == 2
    for empty in ("", " , "):
        assert invoke(*asked, "--hosts", empty).exit_code == 2
