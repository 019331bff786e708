"""A GPU's clock is locked for the length of a race and given back, whatever becomes of the race."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.machine.hardware.locked_clocks import locked_clocks, require_clock

pytestmark = pytest.mark.sanitized
BINDINGS = Path(__file__).parents[2] / "support/nvml_on_fakes"
PROGRAM = """
import os, signal, sys
from fairlap.errors import NotAvailable
from fairlap.machine.hardware.locked_clocks import locked_clocks
try:
    with locked_clocks("cuda:0", sys.argv[1]):
        print("locked", flush=True)
        exec(sys.argv[2])
except NotAvailable as refused:
    print(refused.code, refused, flush=True)
"""


def ran(calls: Path, clock: str, body: str, **variables: str) -> tuple[int, str, list[str]]:
    """Run a race of this body, and wait for what outlives it."""
    path = os.pathsep.join([str(BINDINGS), *filter(None, sys.path)])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "NVML_CALLS": str(calls),
        "FAIRLAP_LIBNVML": "libc.so.6",
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, clock, body], env=environment, capture_output=True, text=True, check=False
    )
    ends_s = time.monotonic() + 120
    while "locked" in done.stdout and time.monotonic() < ends_s and "reset" not in calls.read_text():
        time.sleep(0.02)
    return done.returncode, done.stdout, calls.read_text().splitlines() if calls.exists() else []


@pytest.mark.slow_but("killed", "Ctrl-C")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.killpg(0, signal.SIGINT)", -signal.SIGINT),
    ],
    ids=["ended", "raised", "killed", "Ctrl-C"],
)
def test_the_clock_is_given_back_also_after_a_crash(tmp_path: Path, body: str, status: int) -> None:
    program = f"os.setpgrp(); {body}" if "killpg" in body else body
    found, printed, calls = ran(tmp_path / "calls", "1410", program)
    assert (found, printed.split()) == (status, ["locked"])
    assert calls == ["lock 0 1410 1410", "reset 0"]


def test_base_is_the_clock_that_the_device_sustains(tmp_path: Path) -> None:
    """NVML's limit TDP, as nvbench locks to the base clock."""
    limit = 0xFFFFFF01
    assert ran(tmp_path / "calls", "base", "pass")[2] == [f"lock 0 {limit} {limit}", "reset 0"]


def test_a_user_who_may_not_lock_it_gets_one_line(tmp_path: Path) -> None:
    _, printed, calls = ran(tmp_path / "calls", "base", "pass", NVML_REFUSES="1")
    assert calls == []
    assert printed.startswith("E_LOCK_CLOCKS")
    assert "Insufficient Permissions" in printed
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize(("clock", "device"), [("base", "cpu"), ("fast", "cuda:0"), ("0", "cuda"), ("-5", "cuda")])
def test_what_is_no_clock_is_refused_before_anything_runs(clock: str, device: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        require_clock(clock, device)
    assert refused.value.code == "E_LOCK_CLOCKS"
    require_clock("", "cpu")


def test_without_a_clock_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    with locked_clocks("cuda:0", ""):
        pass
