"""A model that never ends being opened does not outlive the program that opens it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workers_of_fake import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are listed under /proc")

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
from fairlap.request.source import Source
opened(Source("endless", "endless:model", trust=True, folder=sys.argv[1]), {"inputs": 1, "changed": 2})
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_model_whose_opening_never_ends_ends_with_its_program(tmp_path: Path, by: signal.Signals) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    with subprocess.Popen([sys.executable, "-c", PROGRAM, tmp_path], cwd=tmp_path, env=environment()) as program:
        while len(found := [int(file.stem) for file in tmp_path.glob("*.pid")]) < 2:
            assert program.poll() is None
            time.sleep(0.01)
        program.send_signal(by)
    deadline_s = time.monotonic() + 30
    while computing := [pid for pid in found if computes(pid)]:
        assert time.monotonic() < deadline_s, computing
        time.sleep(0.01)


def computes(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/exe").readlink())  # a zombie has none
    except OSError:
        return False
