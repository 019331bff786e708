"""``fairlap load`` from the command line and from Python: what it refuses, prints, stores and writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fairlap as package
import pytest
from command_line import fairlap, invoke, refusal
from fairlap.store.run_file import load_run
from served_framework import install_served

_QUICK = ("--p90", "100ms", "--trial", "200ms", "--threads", 1, "--seconds", "20ms", "--blocks", 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["mlp", "--on", "torch"], "E_LOAD"),
        (["mlp", "--on", "torch", "--p99", "20ms", "--p50", "1ms"], "E_LOAD"),
        (["mlp", "--on", "torch", "--p99", "20ms", "--longest-wait", "1ms"], "E_LOAD"),
        (["mlp", "--on", "torch", "--p99", "20ms", "--largest-batch", "4", "--batch", "8"], "E_LOAD"),
        (["--p99", "20ms"], "E_REQUEST"),
        (["mlp", "--p99", "20ms"], "E_REQUEST"),
    ],
)
def test_a_load_that_cannot_be_served_is_refused_before_anything_runs(arguments: list[str], code: str) -> None:
    assert refusal("load", *arguments).code == code


@pytest.mark.parametrize("value", ["0", "-1ms", "soon"])
def test_a_bound_is_a_duration(value: str) -> None:
    assert invoke("load", "mlp", "--on", "torch", "--p99", value).exit_code == 2


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_served(tmp_path / "installed", monkeypatch)
    for variable in ("FAIRLAP_CACHE", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc")
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
    exported = fairlap("export", "last", "-o", "rows.csv", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert "largest_rate_per_s" in (tmp_path / "rows.csv").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc")
@pytest.mark.usefixtures("served")
def test_a_request_file_is_raced_with_the_options_of_the_command_line(tmp_path: Path) -> None:
    text = 'models = ["mlp"]\ncontestants = ["served"]\nblocks = 1\nseconds = "20ms"\nthreads = 1\n'
    (tmp_path / "load.toml").write_text(f'{text}[load]\np90 = "100ms"\ntrial = "5s"\n')
    done = fairlap("load", "load.toml", "--trial", "200ms", "--no-store", "-q", "-o", "run.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    load = load_run(tmp_path / "run.json").plan.load
    assert load is not None
    assert (load.percentile, load.trial_s) == (0.9, 0.2)


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc")
@pytest.mark.usefixtures("served")
def test_python_returns_the_rows() -> None:
    options = {"p90": "100ms", "trial": "200ms", "threads": 1, "seconds": "20ms", "blocks": 1}
    [row] = package.load("mlp", on="served", **options).rows
    assert row.largest_rate_per_s is not None
    assert row.load == "p90 within 100 ms"
