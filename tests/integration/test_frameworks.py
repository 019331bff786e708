"""The real frameworks: the same weights, the same answers, gradients that are slopes, and settings as asked."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from example_installed import install_example
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.machine.programs.guardian import TOKEN
from fairlap.race.equal_work.timed_work import TIMED_CALL
from fairlap.request.names import contestant_named
from fairlap.request.work import Mode, Work
from fairlap.scenarios.process_result import ProcessResult
from one_block import processes_of_one_block
from processes_seen import wait_until, wait_until_empty

pytestmark = [pytest.mark.sanitized, pytest.mark.timeout(600)]

ALL = (
    *("torch", "torch:compile", "jax", "tensorflow", "tensorflow:graph", "tensorflow:xla"),
    *("onnxruntime", "openvino", "litert"),
)
DIFFERENTIATE = ALL[:6]
THREADS = 1


def here(name: str) -> bool:
    return is_importable(framework_named(contestant_named(name).framework))


def needs(name: str) -> None:
    if not here(name):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")


CHECKED = {"before", "changed inputs", "after", TIMED_CALL}
DIRECTIONS = 3


@functools.cache
def race(model: str, mode: Mode, contestants: tuple[str, ...]) -> dict[str, ProcessResult]:
    listed = ",".join(name for name in contestants if here(name))
    return processes_of_one_block(listed, Work(model, 2, mode), threads=THREADS)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mlp", pytest.param("convnet", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", ALL)
def test_every_framework_gives_the_reference_s_answer_from_the_given_weights(name: str, model: str) -> None:
    needs(name)
    process = race(model, "infer", ALL)[name]
    assert process.outcome == "finished", process.message + process.details
    assert {error.when for error in process.errors} == CHECKED
    assert all(error.distance < 1e-5 for error in process.errors)
    package = framework_named(contestant_named(name).framework).packages[0].partition("==")[0]
    assert process.version.startswith(version(package).partition("+")[0])


@pytest.mark.thorough
@pytest.mark.parametrize("name", DIFFERENTIATE)
def test_every_framework_that_differentiates_gives_the_slopes_of_the_reference(name: str) -> None:
    needs(name)
    process = race("mlp", "grad", ALL)[name]
    assert process.outcome == "finished", process.message + process.details
    slopes = [error for error in process.errors if error.what.startswith("gradient")]
    along = [error for error in slopes if "along" in error.what]
    compared = [error for error in slopes if "compared with" in error.what]
    assert {error.when for error in along} == CHECKED
    assert len(along) % DIRECTIONS == 0
    assert all(error.distance < 1e-4 for error in slopes)
    assert len(compared) <= 1
    everyone = race("mlp", "grad", ALL).values()
    later = [each for each in everyone if any("compared with" in error.what for error in each.errors)]
    assert len(later) == len(DIFFERENTIATE) - 1  # all but the first


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "litert"])
def test_a_framework_that_does_not_differentiate_says_so(name: str) -> None:
    needs(name)
    assert race("mlp", "grad", ALL)[name].outcome == "unsupported"


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_the_threads_in_force_are_read_back(name: str) -> None:
    needs(name)
    assert race("mlp", "infer", ALL)[name].in_force["threads"] == str(THREADS)


@pytest.mark.slow
def test_openvino_is_held_to_float32_though_it_prefers_bfloat16_where_the_processor_has_it() -> None:
    needs("openvino")
    assert race("mlp", "infer", ALL)["openvino"].in_force["precision"] == "fp32"


@pytest.mark.slow
def test_compare_writes_everything_it_showed(tmp_path: Path) -> None:
    needs("jax")
    needs("onnxruntime")
    out = tmp_path / "out.json"
    ran = fairlap(
        "compare",
        "mlp",
        "--on",
        "jax,onnxruntime",
        "--blocks",
        "2",
        "--seconds",
        "0.1",
        "--conditions",
        "both",
        "-o",
        str(out),
    )
    assert ran.returncode == 0, ran.stderr
    assert "no verdict" not in ran.stdout
    document = json.loads(out.read_text())
    for each in document["work_results"]:
        warned = {warning["code"] for pair in each["comparisons"] for warning in pair["warnings"]}
        assert "W_TOO_FEW_BLOCKS" in warned or each["no_verdict_code"] == "E_BUSY_MACHINE"
    assert [process["outcome"] for process in document["processes"]] == ["finished"] * 8
    assert {work_result["conditions"] for work_result in document["work_results"]} == {"controlled", "as-found"}
    [work] = document["plan"]["works"]
    asked = {"model": "mlp", "batch": 1, "mode": "infer", "precision": "fp32"}
    assert {name: value for name, value in work.items() if value not in (None, [])} == asked


@pytest.mark.slow
def test_a_plan_that_was_saved_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path / "installed", monkeypatch)
    plan, out = str(tmp_path / "plan.json"), tmp_path / "out.json"
    finished = fairlap(
        "compare", "example_model", "--on", "example,example:slow", "--blocks", "2", "--save-plan", plan, "--dry-run"
    )
    assert finished.returncode == 0, finished.stderr
    assert "4 processes in 2 blocks" in finished.stdout
    assert fairlap("compare", "--plan", plan, "-o", str(out)).returncode == 0
    saved, replayed = json.loads(Path(plan).read_text()), json.loads(out.read_text())
    assert replayed["plan"] == saved
    ran = [(process["block"], process["contestant"], process["hash_seed"]) for process in replayed["processes"]]
    assert ran == [
        (block["number"], saved["contestants"][place]["text"], block["hash_seed"])
        for block in saved["blocks"]
        for place in block["order"]
    ]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="nobody can write to /proc there")
def test_a_file_that_cannot_be_written_does_not_end_the_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path / "installed", monkeypatch)
    outputs = ["-o", str(tmp_path / "out.csv"), "-o", str(tmp_path / "out.html")]
    ran = fairlap(
        "compare",
        "example_model",
        "--on",
        "example",
        "--blocks",
        "1",
        "--seconds",
        "0.05",
        "--no-store",
        *outputs,
        longest_file_blocks=512,
    )
    assert ran.returncode == 1
    assert "[E_FILE]" in ran.stderr
    assert "example_model · infer" in ran.stdout
    assert [path.name for path in tmp_path.glob("out.*")] == ["out.csv"]


@pytest.mark.slow
def test_a_file_that_could_not_be_written_is_refused_before_the_race() -> None:
    ran = fairlap("compare", "mlp", "--on", "torch", "-o", "/proc/out.json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "[E_FILE]" in ran.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found through /proc")
def test_ctrl_c_keeps_what_ended_and_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path / "installed", monkeypatch)
    out = tmp_path / "out.json"
    arguments = ["compare", "example_model", "--on", "example,example:hang-call", "--seed", "1", "-o", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlap", *arguments, "--conditions", "as-found", "--blocks", "40"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: workers_of(process.pid))
    time.sleep(1)  # the good one may or may not have ended by now; the hanging one never will
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == 130, stderr
    assert "fairlap: interrupted after " in stderr
    assert "Traceback" not in stderr
    assert workers_of(process.pid) == []
    assert all(process["outcome"] == "finished" for process in json.loads(out.read_text())["processes"])


@pytest.mark.slow
def test_a_killed_race_leaves_no_worker_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux ends a process with its parent")
    install_example(tmp_path / "installed", monkeypatch)
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlap", "compare", "example_model", "--on", "example:hang-call"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: workers_of(process.pid))
    process.kill()
    process.wait()
    wait_until_empty(lambda: workers_of(process.pid), 60)


def workers_of(race: int) -> list[int]:
    """Find processes that name this race as their parent, and whatever carries such a worker's token."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            asked = f"--parent\0{race}\0".encode() in (path / "cmdline").read_bytes()
            if asked and TOKEN.encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def fairlap(*arguments: str, longest_file_blocks: int | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlap", *arguments]
    if longest_file_blocks is not None:
        command = ["sh", "-c", f'ulimit -f {longest_file_blocks}; exec "$@"', "sh", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tensorflow:graph", "tensorflow:xla"])
def test_a_model_that_can_also_normalise_by_the_batch_answers_as_a_graph(name: str) -> None:
    if not here(name):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    process = processes_of_one_block(name, Work("mnist", 2), threads=THREADS)[name]
    assert process.outcome == "finished", process.message
