"""What the command line of a race refuses, in a line, before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import error_code, fairlap, here, invoke, output, refusal
from fairlap.store.store import open_store
from runs_in_store import keep_whole
from saved_runs import saved_run

pytestmark = pytest.mark.sanitized


def test_data_that_is_a_link_to_itself_is_refused_in_a_line(tmp_path: Path) -> None:
    loop = tmp_path / "loop.npy"
    loop.symlink_to(loop)
    assert f"no data at {loop}" in str(refusal("compare", "mlp", "--on", "torch", "--data", loop))


def test_a_refused_race_leaves_no_plan_behind(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    refusal("compare", "mlp", "--on", "torch", "--baseline", "jax", "--save-plan", plan)
    assert not plan.exists()


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ([], "model"),
        (["mlp"], "--on"),
        (["mlp", "--on", "torhc"], "did you mean torch"),
        (["mlp", "--on", "torch:fast"], "fast"),
        (["mpl", "--on", "torch"], "did you mean mlp"),
        (["mlp", "--on", "torch", "--blocks", "0"], "blocks"),
        (["mlp", "--on", "torch", "--blocks", "100000000"], "100,000,000"),
        (["mlp", "--on", "torch", "--threads", "0"], "threads"),
        (["mlp", "--on", "torch", "--threads", "100000"], "threads"),
        (["mlp", "--on", "torch", "--batch", "0"], "batch"),
        (["softmax", "--on", "torch", "--mode", "grad"], "grad"),
        (["mlp", "softmax", "--on", "torch", "--mode", "infer,grad"], "grad"),
        (["mlp", "--on", "torch", "--batch", "8,8"], "--batch"),
        (["mlp", "--on", "torch", "-o", "/nowhere/out.json"], "/nowhere"),
        (["mlp", "--on", "torch", "-o", "rows.csv", "-o", "./rows.csv"], "rows.csv"),
        (["mlp", "--on", "torch", "-o", "rows.xyz"], "rows.xyz"),
        (["mlp", "--on", "torch", "--baseline", "jax"], "jax"),
        (["mlp", "--on", "torch", "--data", ""], "''"),
        (["mlp", "--on", "torch", "--price", "cheap"], "cheap"),
        (["--plan", "plan.json", "--blocks", "3"], "--blocks"),
        (["--plan", "/nowhere/plan.json"], "/nowhere/plan.json"),
        (["mlp", "--plan", "/nowhere/plan.json"], "MODEL"),
    ],
)
def test_a_race_that_cannot_be_run_is_refused(arguments: list[str], value: str) -> None:
    assert value in str(refusal("compare", *arguments))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--on", " , "),
        ("--on", "torch,torch"),
        ("--batch", "1,x"),
        ("--batch", ","),
        ("--mode", "infer,learn"),
        ("--precision", ""),
        ("--device", "gpu"),
        ("--target", "200%"),
        ("--budget", "soon"),
        ("--seconds", "-1"),
        ("--seconds", "nan"),
        ("--seed", "-1"),
        ("--baseline", ""),
        ("--price", ""),
    ],
)
def test_a_value_that_an_option_cannot_have_is_a_usage_error(option: str, value: str) -> None:
    result = invoke("compare", "mlp", "--on", "torch", option, value)
    assert result.exit_code == 2
    assert option in result.output


def dry(*arguments: object) -> list[str]:
    return output("compare", *arguments, "--dry-run").splitlines()


def test_a_dry_run_shows_on_one_screen_what_would_race_and_runs_nothing() -> None:
    models, batches = ("mlp", "gemm", "softmax"), ",".join(map(str, range(1, 21)))
    lines = dry(*models, "--on", "torch,jax", "--batch", batches, "--blocks", "7", "--seed", "1", "--threads", "1")
    assert len(lines) <= 24
    assert lines[0] == "mlp · infer · fp32 · batch 1"
    assert "and 48 more" in lines
    assert any(line.startswith("840 processes in 420 blocks; a block is 2 new processes") for line in lines)
    assert "Seed 1." in lines[-1]


def test_a_dry_run_shows_how_each_contestant_would_run() -> None:
    shown = dry("mlp", "--on", "torch,jax==0.4.30,./nothing", "--threads", "1", "--blocks", "6")
    [torch, jax, program] = [line.split(maxsplit=1) for line in shown if line.startswith("  ")]
    assert torch == ["torch", "runs in this environment"]
    assert jax[0] == "jax==0.4.30"
    assert "jax==0.4.30 optax==" in jax[1]
    assert "will not run" in program[1]
    lines = dry("mlp", "--on", "onnxruntime,tensorrt", "--threads", "1", "--blocks", "6")
    [onnxruntime, tensorrt] = [line for line in lines if line.startswith("  ")]
    assert "will not run" not in onnxruntime
    assert "--device cuda" in tensorrt
    commands = dry("--command", "a=true", "--command", "b=./nothing", "--blocks", "6")
    assert ["will not run" in line for line in commands if line.startswith("  ")] == [False, True]


def test_a_dry_run_shows_what_the_race_may_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    race = ("mlp", "--on", "torch,jax", "--threads", "1")
    assert "at most 7 s" in " ".join(dry(*race, "--budget", "7s"))
    assert "by the last" not in " ".join(dry(*race, "--blocks", "600"))
    with open_store() as store:
        keep_whole(store, saved_run({"torch": 1e6, "jax": 2e6}))  # 24 processes in a second
    assert "1,200 processes in 600 blocks, about 50 s by the last" in " ".join(dry(*race, "--blocks", "600"))


@pytest.mark.parametrize(
    ("models", "contestants", "blocks", "needed"),
    [
        (("mlp", "gemm"), "torch,jax", 6, 7),
        (("mlp", "gemm"), "torch,jax", 7, None),
        (("mlp",), "torch,jax", 5, 6),
        (("mlp",), "torch", 1, None),
    ],
)
def test_blocks_that_cannot_show_a_difference_are_said_before_they_run(
    models: tuple[str, ...], contestants: str, blocks: int, needed: int | None
) -> None:
    wanted = ("compare", *models, "--on", contestants, "--threads=1", "--blocks", blocks, "--dry-run")
    said = invoke(*wanted).stderr
    assert ("W_TOO_FEW_BLOCKS" in said) == (needed is not None)
    assert f"at least {needed} blocks" in said or needed is None
    assert "W_TOO_FEW_BLOCKS" not in invoke(*wanted, "--quiet").stderr


def test_a_dry_run_says_that_it_did_not_look_for_versions() -> None:
    wanted = ("compare", "mlp", "--on", "torch==99.0,jax", "--threads=1", "--blocks=6", "--dry-run")
    notes = [line for line in invoke(*wanted).stderr.splitlines() if "not checked" in line]
    assert len(notes) == 1
    assert "torch==99.0" in notes[0]
    assert "jax" not in notes[0]


def test_a_dry_run_shows_what_calls_are_fed() -> None:
    shown = output("compare", "mlp", "--on", "torch", "--data", "synthetic", "--blocks=1", "--dry-run")
    assert " · fed synthetic" in shown


@pytest.mark.parametrize("setting", [("--optimizer", "sgd:rate=1"), ("--schedule", "cosine")])
def test_a_bad_optimizer_or_schedule_is_reported_before_data_are_read(setting: tuple[str, str], tmp_path: Path) -> None:
    table = tmp_path / "bad.csv"
    table.write_text("a,b\nred,x\n")  # which would be refused as well
    learning = ("--mode", "train", "--to-score", "90%", "--train-on", str(table))
    assert refusal("compare", "tabular", "--on", "torch", *learning, "--blocks=1").code == "E_DATA"
    refused = refusal("compare", "tabular", "--on", "torch", *learning, *setting, "--blocks=1")
    assert (refused.code, str(table) in str(refused)) == ("E_REQUEST", False)


@pytest.mark.slow_but("compare")
@pytest.mark.parametrize("command", ["compare", "self-test"])
def test_a_race_on_a_gpu_is_refused_once_where_there_is_no_driver(command: str, tmp_path: Path) -> None:
    """And before an environment is made: PyTorch's for CUDA has gigabytes."""
    arguments = (command, "mlp", "--on", "torch==2.0.0", "--device", "cuda:0")
    done = fairlap(*arguments, FAIRLAP_LIBCUDA=tmp_path / "none.so", FAIRLAP_ENVS=tmp_path / "envs")
    assert (done.returncode, done.stdout, error_code(done)) == (2, "", "E_NOT_AVAILABLE")
    assert not (tmp_path / "envs").exists()


def test_where_no_environment_was_made_envs_says_so(tmp_path: Path) -> None:
    done = here("envs", FAIRLAP_ENVS=tmp_path)
    assert done.returncode == 0
    assert "no environments yet" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["remove"], "give the keys of the environments to remove, or --all"),
        (["remove", "abc"], "'abc'"),
        (["remove", "abc", "--all"], "give the keys of the environments to remove, or --all"),
    ],
)
def test_removing_nothing_is_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = here("envs", *arguments, FAIRLAP_ENVS=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.slow
def test_a_report_that_cannot_be_drawn_is_refused_before_the_race(tmp_path: Path) -> None:
    """Altair is hidden from this one process."""
    program = (
        "import importlib.util, sys\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'altair' else found(name, *rest)\n"
        f"sys.argv = ['fairlap', 'compare', 'mlp', '--on', 'torch', '-o', {str(tmp_path / 'r.html')!r}]\n"
        "from fairlap.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "needs altair" in done.stderr
    assert "pip install 'fairlap[report]'" in done.stderr


def test_a_slowdown_that_is_none_is_refused_before_the_race() -> None:
    assert "slowdown=x" in str(refusal("compare", "mlp", "--on", "torch:slowdown=x", "--dry-run"))


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--price", "cheap"), "E_PRICE"),
        (("--threads", "9999"), "E_REQUEST"),
        (("--blocks", "0"), "E_REQUEST"),
        (("--trace", "traces"), "E_PROFILE"),
        (("-o", "race.docx"), "E_OUTPUT_FORMAT"),
        (("--recompile", "tokens"), "E_RECOMPILE"),
        (("--keep-weights", "file/below"), "E_KEEP_WEIGHTS"),
    ],
)
def test_options_are_refused_before_data_are_read_and_leave_no_folder(
    more: tuple[str, str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    given = {"--on": "torch", "--blocks": "1", "--mode": "train", "--to-score": "90%", "--train-on": "missing.csv"}
    given |= {"--keep-weights": "learnt"}
    for options, refused in ((given, "E_DATA"), (given | dict([more]), code)):
        assert refusal("compare", "tabular", *(part for option in options.items() for part in option)).code == refused
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "twice", [("--on", "torch", "--on", "jax"), ("--on=torch", "--on=jax"), ("--batch", "1", "--batch", "2")]
)
def test_an_option_that_is_given_twice_is_refused_where_click_would_take_the_last(twice: tuple[str, ...]) -> None:
    done = here("compare", "mlp", *twice, "--dry-run")
    assert (done.returncode, error_code(done)) == (2, "E_USAGE")
    assert f"{twice[0].partition('=')[0]} a,b" in done.stderr


def test_a_dry_run_leaves_no_folder_either(tmp_path: Path) -> None:
    learning = ("--mode", "train", "--to-score", "90%", "--keep-weights", tmp_path / "learnt")
    invoke("compare", "tabular", "--on", "torch", "--blocks=1", "--threads=1", *learning, "--dry-run")
    assert list(tmp_path.iterdir()) == []
