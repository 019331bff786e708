"""An ONNX file that never ends leaves no process behind, however fairlap is ended while it opens the file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from fairlap.machine.processes import DEAD, process_ids, process_stat

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are listed under /proc"),
    pytest.mark.slow,
]

COMMANDS = {"list routes": ["list", "routes"], "compare": ["compare", "--on", "onnxruntime", "--no-store"]}
WITHIN_S = 2.0  # where cores are free
STEPS = 10**12
MARK = "FAIRLAP_TEST_OF_ENDLESS_MODELS"


def endless(file: Path) -> Path:
    """Write a loop that adds the input to itself."""
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
    ]
    loop = helper.make_node("Loop", ["steps", "true", "x"], ["y"], body=body)
    inputs, outputs = [value("x", 1, [2, 4])], [value("y", 1, [2, 4])]
    model = helper.make_model(
        helper.make_graph([loop], "endless", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    onnx.save(model, file)
    return file


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("command", list(COMMANDS))
def test_no_process_is_left_two_seconds_after_a_signal(tmp_path: Path, command: str, number: signal.Signals) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    mark = uuid.uuid4().hex
    environment = {**os.environ, MARK: mark, "FAIRLAP_CACHE": str(tmp_path)}
    arguments = [sys.executable, "-m", "fairlap", *COMMANDS[command], str(endless(tmp_path / "endless.onnx"))]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        while not any(computes(pid) for pid in marked(mark) if pid != program.pid):
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


def computes(pid: int) -> bool:
    """For long enough to be in the loop, and not in what is imported for it."""
    try:
        opens = b"fairlap.models.sources.opening" in Path(f"/proc/{pid}/cmdline").read_bytes()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return opens and int(fields[11]) + int(fields[12]) > 4 * os.sysconf("SC_CLK_TCK")
