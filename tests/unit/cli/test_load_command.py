"""``fairlap load`` from the command line and from Python: what it refuses, prints, stores and writes."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import fairlap as package
import msgspec
import numpy as np
import pytest
from command_line import error_code, fairlap, invoke, output, refusal
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import load_plan
from fairlap.store.runs.run_file import load_run
from fairlap.store.store import open_store
from machine_marks import needs_proc
from served_framework import install_served

_LENGTH = ("--trial", "200ms", "--threads", 1, "--seconds", "20ms", "--blocks", 1)
_QUICK = ("--p90", "100ms", *_LENGTH)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["mlp", "--on", "torch"], "E_LOAD"),
        (["mlp", "--on", "torch", "--p99", "20ms", "--p50", "1ms"], "E_LOAD"),
        (["mlp", "--on", "torch", "--p99", "20ms", "--longest-wait", "1ms"], "E_LOAD"),
        (["mlp", "--on", "torch", "--first-token", "50ms"], "E_LOAD"),
        (["mlp", "--on", "torch", "--p99", "20ms", "--first-token", "5ms"], "E_LOAD"),
        (["mlp", "--on", "torch", "--p99", "20ms", "--largest-batch", "4", "--batch", "8"], "E_LOAD"),
        (["--p99", "20ms"], "E_REQUEST"),
        (["mlp", "--p99", "20ms"], "E_REQUEST"),
    ],
)
def test_a_load_that_cannot_be_served_is_refused_before_anything_runs(arguments: list[str], code: str) -> None:
    assert refusal("load", *arguments).code == code


@pytest.mark.parametrize("name", [".", "photos", "prompts.jsonl"])
def test_a_folder_in_the_place_of_a_file_is_called_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir(exist_ok=True)
    streams = ("http://127.0.0.1:9/v1:model=m", "--tokens", "4", "--rate", "1")
    error = refusal("load", name, "--on", *(streams if name.endswith("jsonl") else ("torch", "--p99", "9ms")))
    assert error.code == ("E_PROMPTS" if name.endswith("jsonl") else "E_REQUEST")
    assert name in str(error)
    assert re.search("is a folder|is a directory", str(error), re.IGNORECASE)


def test_a_bound_without_a_unit_is_refused_since_some_mean_milliseconds() -> None:
    done = fairlap("load", "mlp", "--on", "torch", "--p99", "50")
    assert (done.returncode, error_code(done)) == (2, "E_REQUEST")
    assert "50ms" in done.stderr


@pytest.mark.slow
def test_load_on_a_gpu_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    arguments = ("load", "mlp", "--on", "torch", *_QUICK, "--device", "cuda")
    done = fairlap(*arguments, FAIRLAP_LIBCUDA=tmp_path / "none.so", FAIRLAP_STORE=tmp_path / "store.sqlite")
    assert (done.returncode, error_code(done)) == (2, "E_NOT_AVAILABLE")


@pytest.mark.parametrize("option", ["--keep-weights", "--trace"])
def test_options_of_training_and_of_profiles_are_none_of_load(option: str, tmp_path: Path) -> None:
    result = invoke("load", "mlp", "--on", "torch", "--p99", "20ms", option, tmp_path)
    assert result.exit_code == 2
    assert option not in output("load", "--help")
    assert option in output("compare", "--help")


@pytest.mark.parametrize("value", ["0", "-1ms", "soon"])
def test_a_bound_is_a_duration(value: str) -> None:
    assert invoke("load", "mlp", "--on", "torch", "--p99", value).exit_code == 2


_PLANNED = ("mlp", "--on", "torch,jax", "--p99", "20ms", "--blocks", 2, "--seed", 1, "--threads", 1)


def test_a_dry_run_prints_the_plan_that_is_saved_and_run_from_its_file(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    printed = output("load", *_PLANNED, "--dry-run", "--save-plan", plan, "--json")
    assert load_plan(plan) == msgspec.json.decode(printed, type=Plan)
    assert json.loads(printed)["works"][0]["load"]["bound_s"] == 0.02
    assert output("load", "--plan", plan, "--dry-run", "--json") == printed
    assert output("load", plan, "--dry-run", "--json") == printed
    assert "block" in output("load", *_PLANNED, "--dry-run")


def test_a_model_that_generates_may_have_a_bound_on_the_first_token_alone_or_with_another() -> None:
    generates = ("characters_generate", "--on", "torch", "--first-token", "50ms", "--blocks", 1, "--dry-run", "--json")
    alone = json.loads(output("load", *generates))["works"][0]["load"]
    assert (alone["bound_s"], alone["first_token_s"], alone["percentile"]) == (None, 0.05, 0.99)
    both = json.loads(output("load", *generates, "--p90", "3s"))["works"][0]["load"]
    assert (both["bound_s"], both["first_token_s"], both["percentile"]) == (3.0, 0.05, 0.9)


def test_a_saved_plan_has_its_bound_and_must_be_one_of_load(tmp_path: Path) -> None:
    of_load, other = tmp_path / "load.json", tmp_path / "other.json"
    output("load", *_PLANNED, "--dry-run", "--save-plan", of_load)
    assert "--p99" in str(refusal("load", "--plan", of_load, "--p99", "1ms"))
    output("compare", "mlp", "--on", "torch", "--blocks", 1, "--threads", 1, "--dry-run", "--save-plan", other)
    assert refusal("load", "--plan", other).code == "E_LOAD"
    assert refusal("load", "--resume", of_load).code == "E_RESUME"


def test_another_host_is_confirmed_before_load_is_sent_to_it() -> None:
    url = "http://192.0.2.1:8000/v2/models/x"
    assert refusal("load", "mlp", "--on", url, "--p99", "20ms", "--dry-run").code == "E_REMOTE"
    output("load", "mlp", "--on", url, "--p99", "20ms", "--remote", "--dry-run")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_served(tmp_path / "installed", monkeypatch)
    for variable in ("FAIRLAP_CACHE", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))


@pytest.mark.slow
@needs_proc
@pytest.mark.usefixtures("served")
def test_a_run_prints_json_is_stored_and_leaves_its_files(tmp_path: Path) -> None:
    done = fairlap("load", "mlp", "--on", "served", *_QUICK, "--json", "-q", "-o", "run.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    [process] = document["processes"]
    assert process["load"]["largest_rate_per_s"] > 0
    assert load_run(tmp_path / "run.json").processes[0].load is not None
    shown = fairlap("show", "last", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "load p90 within 100 ms" in shown.stdout
    with open_store(reading=True) as store:
        [stored], samples = store.load("last").processes, store.samples("last", 0, "served")
    assert stored.load is not None
    trials = stored.load.trials
    place = max(place for place, trial in enumerate(trials) if trial.kind == "at_largest_rate")
    latency = samples[f"trial-{place}/completed_ns"] - samples[f"trial-{place}/due_ns"]
    times = trials[place].times
    assert times is not None
    assert np.quantile(latency, (0.5, 0.9, 0.99)) == pytest.approx((times.p50_ns, times.p90_ns, times.p99_ns))
    exported = fairlap("export", "last", "-o", "rows.csv", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert "largest_rate_per_s" in (tmp_path / "rows.csv").read_text()


@pytest.mark.slow
@needs_proc
@pytest.mark.usefixtures("served")
def test_a_run_in_which_no_contestant_finds_a_rate_is_printed_and_fails(tmp_path: Path) -> None:
    done = fairlap("load", "mlp", "--on", "served", *_LENGTH, "--p90", "1ms", "-q", cwd=tmp_path)
    assert "E_NO_RATE" in done.stdout
    assert done.returncode == 1, done.stderr


@pytest.mark.slow
@needs_proc
@pytest.mark.usefixtures("served")
def test_a_run_that_ctrl_c_ends_is_resumed_by_the_command_that_it_prints(tmp_path: Path) -> None:
    options = ("--p90", "100ms", "--trial", "100ms", "--threads", 1, "--seconds", "20ms", "--blocks", 2)
    command = [sys.executable, "-m", "fairlap", "load", "mlp", "--on", "served", *map(str, options)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("[1/"):
            running.send_signal(signal.SIGINT)
            break
    errors = running.stderr.read()
    assert running.wait(60) == 130
    [printed] = [line.partition("resume with: fairlap ")[2] for line in errors.splitlines() if "resume with: " in line]
    assert printed.startswith("load --resume ")
    resumed = fairlap(*shlex.split(printed), "--json", "-q", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    processes = json.loads(resumed.stdout)["processes"]
    assert [each["outcome"] for each in processes] == ["finished"] * 2


@pytest.mark.slow
@needs_proc
@pytest.mark.usefixtures("served")
def test_a_request_file_is_raced_with_the_options_of_the_command_line(tmp_path: Path) -> None:
    text = 'models = ["mlp"]\ncontestants = ["served"]\nblocks = 1\nseconds = "20ms"\nthreads = 1\n'
    (tmp_path / "load.toml").write_text(f'{text}[load]\np90 = "100ms"\ntrial = "5s"\n')
    done = fairlap("load", "load.toml", "--trial", "200ms", "--no-store", "-q", "-o", "run.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    load = load_run(tmp_path / "run.json").plan.works[0].load
    assert load is not None
    assert (load.percentile, load.trial_s) == (0.9, 0.2)


@pytest.mark.slow
@needs_proc
@pytest.mark.usefixtures("served")
def test_python_returns_the_rows() -> None:
    options = {"p90": "100ms", "trial": "100ms", "threads": 1, "seconds": "20ms", "blocks": 1}
    [row] = package.load("mlp", on="served", **options).rows
    assert row.largest_rate_per_s is not None
    assert row.load == "p90 within 100 ms"
