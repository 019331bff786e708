"""A model that never ends being opened, or takes the machine's memory, is given up and outlives no program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import refusal
from fairlap.launch import opened_source
from fairlap.machine.programs.processes import DEAD, process_ids, process_stat
from fairlap.models.sources.contract import SourceError
from fairlap.request.fields.source import Source
from machine_marks import needs_proc
from onnx_files import source_of
from processes_seen import wait_until_empty
from workers_of_fake import environment

pytestmark = needs_proc

ENDLESS = """
import os, pathlib

def model():
    if os.fork() == 0:
        os.setsid()
    pathlib.Path(__file__).with_name(f"{os.getpid()}.pid").touch()
    while True:
        pass
"""
PROGRAM = """
import sys
from fairlap.launch.opened_source import opened
from fairlap.request.fields.source import Source
opened(Source("endless", "endless:model", trust=True, folder=sys.argv[1]), {"inputs": 1, "changed": 2})
"""


@pytest.mark.slow_but("9")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_model_whose_opening_never_ends_ends_with_its_program(tmp_path: Path, by: signal.Signals) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    with subprocess.Popen([sys.executable, "-c", PROGRAM, tmp_path], cwd=tmp_path, env=environment()) as program:
        while len(found := [int(file.stem) for file in tmp_path.glob("*.pid")]) < 2:
            assert program.poll() is None
            time.sleep(0.01)
        program.send_signal(by)
    wait_until_empty(lambda: [pid for pid in found if computes(pid)])


def computes(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/exe").readlink())  # a zombie has none
    except OSError:
        return False


COMMANDS = {"list routes": ["list", "routes"], "compare": ["compare", "--on", "onnxruntime", "--no-store"]}
WITHIN_S = 2.0  # where cores are free
STEPS = 10**12
MARK = "FAIRLAP_TEST_OF_ENDLESS_MODELS"


def endless(file: Path) -> Path:
    """Write a loop that adds the input to itself, with an operator that fairlap's importer lacks and would refuse."""
    import onnx
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go on"], ["goes on"]), helper.make_node("Add", ["sum", "x"], ["next"])],
        "body",
        [value("step", TensorProto.INT64, []), value("go on", TensorProto.BOOL, []), value("sum", 1, [2, 4])],
        [value("goes on", TensorProto.BOOL, []), value("next", 1, [2, 4])],
    )
    constants = [
        helper.make_tensor("steps", TensorProto.INT64, [], [STEPS]),
        helper.make_tensor("true", TensorProto.BOOL, [], [True]),
        helper.make_tensor("rows", TensorProto.BOOL, [2], [True, True]),
    ]
    loop = helper.make_node("Loop", ["steps", "true", "x"], ["sum of all"], body=body)
    kept = helper.make_node("Compress", ["sum of all", "rows"], ["y"], axis=0)
    inputs, outputs = [value("x", 1, [2, 4])], [value("y", 1, [2, 4])]
    model = helper.make_model(
        helper.make_graph([loop, kept], "endless", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    onnx.save(model, file)
    return file


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("command", list(COMMANDS))
def test_no_process_is_left_two_seconds_after_a_signal(tmp_path: Path, command: str, number: signal.Signals) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    mark = uuid.uuid4().hex
    environment = {**os.environ, MARK: mark, "FAIRLAP_CACHE": str(tmp_path)}
    arguments = [sys.executable, "-m", "fairlap", *COMMANDS[command], str(endless(tmp_path / "endless.onnx"))]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        while not any(is_in_the_loop(pid) for pid in marked(mark) if pid != program.pid):
            assert program.poll() is None
            time.sleep(0.05)
        program.send_signal(number)
        deadline_s = time.monotonic() + WITHIN_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        while (left := marked(mark)) and time.monotonic() < deadline_s:
            time.sleep(0.02)
    assert not left, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left if Path(f"/proc/{pid}").exists()]


def marked(mark: str) -> list[int]:
    return [pid for pid in process_ids() if _has(pid, f"{MARK}={mark}".encode())]


def _has(pid: int, mark: bytes) -> bool:
    stat = process_stat(pid)
    try:
        return stat is not None and stat.state not in DEAD and mark in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def is_in_the_loop(pid: int) -> bool:
    """For long enough to be in the loop, and not in what is imported for it."""
    try:
        opens = b"fairlap.models.sources.opening" in Path(f"/proc/{pid}/cmdline").read_bytes()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return opens and int(fields[11]) + int(fields[12]) > 4 * os.sysconf("SC_CLK_TCK")


def test_a_small_file_whose_shapes_double_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inference of shapes computes what a shape is made of, and each node here doubles it."""
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    from onnx import TensorProto, helper

    names = ["s", *(f"t{level}" for level in range(39))]
    nodes = [helper.make_node("Concat", 2 * [name], [after], axis=0) for name, after in pairwise(names)]
    nodes += [helper.make_node("Slice", [names[-1], "zero", "one"], ["shape"]),
              helper.make_node("Reshape", ["x", "shape"], ["y"])]  # fmt: skip
    known = [helper.make_tensor(name, TensorProto.INT64, [1], [value]) for name, value in
             (("s", 4), ("zero", 0), ("one", 1))]  # fmt: skip
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "concat.onnx").write_bytes(model.SerializeToString())
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opened_source, "available_memory_bytes", lambda: 2**30)
    with pytest.raises(SourceError) as given_up:
        opened_source.opened(source_of(tmp_path / "concat.onnx"), {"first": 1})
    assert given_up.value.code == "E_SOURCE_SIZE"


SLEEPS = """
import time

def model():
    time.sleep(3600)
"""


@pytest.mark.slow_but("the budget")
@pytest.mark.parametrize(("budget_s", "least_s"), [(0.1, 1.5), (1.5, 0.1)], ids=["the least", "the budget"])
def test_a_model_that_sleeps_while_it_is_read_is_given_up_with_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget_s: float, least_s: float
) -> None:
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    monkeypatch.setattr(opened_source, "LEAST_TO_READ_S", least_s)
    asleep = Source("sleeps:model", "sleeps:model", trust=True, folder=str(tmp_path))
    announced: list[str] = []
    began_s = time.monotonic()
    with pytest.raises(SourceError, match=r"sleeps:model.* 2 s") as given_up:
        opened_source.opened(asleep, {"inputs": 1, "changed": 2}, announced.append, budget_s=budget_s)
    assert given_up.value.code == "E_TIMEOUT"
    assert time.monotonic() - began_s > 1.5
    assert "sleeps:model" in announced[0]
    assert "2 s" in announced[0]


def test_a_race_reads_its_models_for_as_long_as_its_budget_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    monkeypatch.setattr(opened_source, "LEAST_TO_READ_S", 0.5)
    monkeypatch.chdir(tmp_path)
    asked = ("compare", "sleeps:model", "--shapes", "x:2x4", "--on", "torch,onnxruntime", "--budget", "1s")
    assert refusal(*asked).code == "E_TIMEOUT"


def test_inputs_of_another_shape_are_named_with_both_shapes_and_the_model(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 64]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "relu.onnx"
    )
    np.savez(tmp_path / "wrong.npz", x=np.zeros((8, 65), np.float32))
    with pytest.raises(SourceError) as refused:
        opened_source.opened(source_of(tmp_path / "relu.onnx", inputs=str(tmp_path / "wrong.npz")), {"inputs": 1})
    assert refused.value.code == "E_MODEL_DIMENSIONS"
    assert all(part in str(refused.value) for part in ("relu.onnx", "'x'", "(batch, 64)", "(8, 65)"))
