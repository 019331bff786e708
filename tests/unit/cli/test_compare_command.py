"""What the command line of a race refuses, in a line, before anything runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.sanitized


def fairlap(*arguments: str, envs: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **({"FAIRLAP_ENVS": str(envs)} if envs else {})}
    command = [sys.executable, "-m", "fairlap", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=variables)


def test_data_that_is_a_link_to_itself_is_refused_in_a_line(tmp_path: Path) -> None:
    loop = tmp_path / "loop.npy"
    loop.symlink_to(loop)
    told = fairlap("compare", "mlp", "--on", "torch", "--data", str(loop))
    assert told.returncode == 2
    assert f"no data at {loop}" in told.stderr


def test_a_refused_race_leaves_no_plan_behind(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    told = fairlap("compare", "mlp", "--on", "torch", "--baseline", "jax", "--save-plan", str(plan))
    assert told.returncode == 2
    assert not plan.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a model and contestants"),
        (["mlp"], "give a model and contestants"),
        (["mlp", "--on", ""], "give a model and contestants"),
        (["mlp", "--on", " , "], "no contestant is named"),
        (["mlp", "--on", "torch,torch"], "torch is named twice"),
        (["mlp", "--on", "torhc"], "did you mean torch"),
        (["mlp", "--on", "torch:fast"], "torch has no variant 'fast'; it has torch, torch:compile"),
        (["mpl", "--on", "torch"], "did you mean mlp"),
        (["mlp", "--on", "torch", "--blocks", "0"], "blocks must lie between 1 and 10,000, not 0"),
        (["mlp", "--on", "torch", "--blocks", "100000000"], "blocks must lie between 1 and 10,000, not 100,000,000"),
        (["mlp", "--on", "torch", "--threads", "0"], "threads must lie between 1"),
        (["mlp", "--on", "torch", "--threads", "100000"], "threads must lie between 1"),
        (["mlp", "--on", "torch", "--batch", "0"], "batch must be between 1"),
        (["mlp", "--on", "torch", "--seconds", "-1"], "seconds must be a finite number above zero"),
        (["mlp", "--on", "torch", "--seconds", "nan"], "seconds must be a finite number above zero"),
        (["softmax", "--on", "torch", "--mode", "grad"], "softmax has no mode grad; it has infer"),
        (["mlp", "--on", "torch", "--json", "/nowhere/out.json"], "/nowhere"),
        (["mlp", "--on", "torch", "--csv", "/nowhere/out.csv"], "/nowhere"),
        (["mlp", "softmax", "--on", "torch", "--mode", "infer,grad"], "softmax has no mode grad; it has infer"),
        (["mlp", "--on", "torch", "--batch", "8,8"], "mlp · infer · fp32 · batch 8 is asked for twice"),
        (["mlp", "--on", "torch", "--baseline", "jax"], "the baseline 'jax' did not race; did you mean torch?"),
        (["mlp", "--on", "torch", "--baseline", ""], "--baseline is empty; give a value, or leave the option out"),
        (["mlp", "--on", "torch", "--price", ""], "--price is empty; give a value, or leave the option out"),
        (["mlp", "--on", "torch", "--data", ""], "there is no data at ''; give synthetic"),
        (["mlp", "--on", "torch", "--price", "cheap"], "there is no price 'cheap'"),
        (["mlp", "--on", "torch", "--csv", "rows", "--md", "./rows"], "rows cannot be written as md: it will hold csv"),
        (["--plan", "plan.json", "--blocks", "3"], "a saved plan has drawn everything already; leave --blocks out"),
        (["--plan", "/nowhere/plan.json"], "the plan /nowhere/plan.json cannot be read"),
        (["mlp", "--plan", "/nowhere/plan.json"], "a saved plan names its own models"),
    ],
)
def test_a_race_that_cannot_be_run_is_refused_in_a_line(arguments: list[str], words: str) -> None:
    told = fairlap("compare", *arguments)
    assert told.returncode == 2
    assert words in told.stderr
    assert told.stderr.startswith("fairlap: ")
    assert len(told.stderr.strip().splitlines()) <= 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch", "1,x"], "'1,x' is neither a whole number nor several such as 1,8"),
        (["--batch", ","], "',' is neither a whole number"),
        (["--mode", "infer,train"], "'train' is not one of infer, grad"),
        (["--precision", ""], "'' is not one of fp32, bf16"),
        (["--device", "gpu"], "'gpu' is no device; give cpu, cuda or cuda:0"),
        (["--target", "200%"], "'200%' is no share such as 1% or 0.01"),
        (["--budget", "soon"], "'soon' is no duration such as 90s, 10m or 1h"),
        (["--seed", "-1"], "-1 is not in the range x>=0"),
        (["--memory-limit", "0"], "0 is not in the range x>=1"),
    ],
)
def test_what_an_option_cannot_mean_is_refused(arguments: list[str], words: str) -> None:
    told = fairlap("compare", "mlp", "--on", "torch", *arguments)
    assert told.returncode == 2
    assert words in told.stderr


def test_a_plan_of_one_process_is_told_in_the_singular() -> None:
    told = fairlap("compare", "mlp", "--on", "torch", "--threads=1", "--blocks=1", "--conditions=as-found", "--dry-run")
    assert ", 1 thread, 1 process in 1 block\n" in told.stdout


def test_a_dry_run_prints_the_plan_and_runs_nothing() -> None:
    told = fairlap("compare", "mlp", "--on", "torch,jax", "--blocks", "3", "--seed", "1", "--dry-run")
    assert told.returncode == 0
    assert "12 processes in 6 blocks" in told.stdout
    assert told.stdout == fairlap("compare", "mlp", "--on", "torch,jax", "--blocks=3", "--seed=1", "--dry-run").stdout


def test_where_no_environment_was_made_envs_says_so(tmp_path: Path) -> None:
    told = fairlap("envs", envs=tmp_path)
    assert told.returncode == 0
    assert "no environment has been made yet" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["remove"], "give the keys of the environments to remove, or --all"),
        (["remove", "abc"], "'abc'"),
        (["remove", "abc", "--all"], "give the keys of the environments to remove, or --all"),
    ],
)
def test_removing_nothing_is_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    told = fairlap("envs", *arguments, envs=tmp_path)
    assert told.returncode == 2
    assert words in told.stderr


def test_a_report_that_cannot_be_drawn_is_refused_before_the_race(tmp_path: Path) -> None:
    """Altair is hidden from this one process."""
    program = (
        "import importlib.util, sys\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'altair' else found(name, *rest)\n"
        f"sys.argv = ['fairlap', 'compare', 'mlp', '--on', 'torch', '--html', {str(tmp_path / 'r.html')!r}]\n"
        "from fairlap.cli import main\n"
        "main()\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert told.returncode == 2
    assert "needs altair" in told.stderr
    assert "pip install 'fairlap[report]'" in told.stderr


def test_a_slowdown_that_is_none_is_refused_before_the_race() -> None:
    told = fairlap("compare", "mlp", "--on", "torch:slowdown=x", "--dry-run")
    assert told.returncode == 2
    assert "slowdown=x" in told.stderr
