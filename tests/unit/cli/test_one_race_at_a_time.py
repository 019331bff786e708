"""Commands that race wait for each other, refuse to, and can be interrupted while they wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import fairlap
import pytest
from command_line import error_code, here
from fairlap.judgement.ledger import read_ledger
from fairlap.machine.race_lock.holder import SETTING
from fairlap.machine.race_lock.lock import MachineBusy, one_race

_WITHIN_S = 60
_TIME = ("time", "time:time_ns", "time:monotonic_ns")
_COMMANDS = ("compare", "--command", "a=true", "--command", "b=true", "--no-store", "--threads", "1")
_SELF_TEST = ("self-test", "mlp", "--on", "onnxruntime")
_SWEEP = 'models = ["mlp"]\ncontestants = ["onnxruntime"]\nblocks = 6\nthreads = 1\n'


@pytest.fixture(autouse=True)
def racing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold the cores in a process that started none of the commands of these tests."""
    monkeypatch.setenv(SETTING, str(tmp_path))
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    ready, announced = os.pipe()
    holder = os.fork()
    if holder == 0:
        try:
            with one_race():
                os.write(announced, b".")
                signal.pause()
        finally:
            os._exit(1)  # and run no other tests
    os.close(announced)
    assert os.read(ready, 1) == b"."
    yield
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    os.close(ready)


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fairlap", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("words", [_TIME, _COMMANDS, _SELF_TEST], ids=lambda words: words[0])
def test_a_command_that_does_not_wait_ends_with_status_2_and_one_code(words: tuple[str, ...]) -> None:
    refused = here(*words, "--no-wait", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["code"] == "E_BUSY"


def test_a_judge_that_does_not_wait_spends_no_share_of_its_ledger(tmp_path: Path) -> None:
    for side in ("base", "change"):
        (tmp_path / side).mkdir()
    ledger = tmp_path / "tries.json"
    sides = ("--base", str(tmp_path / "base"), "--change", str(tmp_path / "change"))
    refused = here("judge", *sides, "--command", "true", "--ledger", ledger, "--no-wait", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["code"] == "E_BUSY"
    assert not ledger.exists() or not read_ledger(ledger).tries


def test_a_sweep_on_this_machine_does_not_start_beside_a_race(tmp_path: Path) -> None:
    (tmp_path / "mlp.toml").write_text(_SWEEP)
    refused = here("sweep", tmp_path / "mlp.toml", "--no-wait")
    assert refused.returncode == 2
    assert error_code(refused) == "E_BUSY"


@pytest.mark.slow_but("time")
@pytest.mark.parametrize("words", [_TIME, _COMMANDS], ids=lambda words: words[0])
def test_ctrl_c_while_a_command_waits_ends_it_with_130(words: tuple[str, ...]) -> None:
    process = started(*words)
    assert process.stderr is not None
    assert any("waiting" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=_WITHIN_S)
    assert process.returncode == 130


def test_in_python_a_comparison_that_does_not_wait_raises() -> None:
    with pytest.raises(MachineBusy):
        fairlap.compare({"a": time.time, "b": time.time_ns}, wait=False)


@pytest.mark.slow
def test_a_conversion_which_times_nothing_does_not_wait(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    import onnx
    from onnx import helper

    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", ends[:1], ends[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "relu.onnx"
    )
    done = here("convert", "relu.onnx", "--for", "onnxruntime", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "relu-for-onnxruntime" / "proof.json").is_file()) == (0, True), done.stderr
