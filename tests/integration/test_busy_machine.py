"""With programs that keep every core busy, no ratio is claimed that is a property of the load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

CORES = sorted(os.sched_getaffinity(0))[:2]
CONTESTANTS = ("torch", "onnxruntime")
CALLABLES = """
import hashlib, threading

DATA, PHASES = bytes(200_000), 10

def work():
    hashlib.sha256(DATA).digest()

def threads_that_meet():
    barrier = threading.Barrier(2)
    def run():
        for _ in range(PHASES):
            work()
            barrier.wait()
    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

def one_thread():
    for _ in range(2 * PHASES):
        work()
"""

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(600),
    pytest.mark.skipif(len(CORES) < 2, reason="needs two cores; `make test-thorough` runs it"),
]


@contextmanager
def busy(programs: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(programs):
            running = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(running.kill)
        yield


def raced(work: str, contestants: Sequence[str], folder: Path) -> dict[str, Any]:
    """Race on two cores, and return the work's result in the JSON."""
    command = [sys.executable, "-m", "fairlap", "compare", work, "--on", ",".join(contestants)]
    ran = subprocess.run(
        [*command, "--blocks", "6", "--threads", "2", "--json", "--quiet"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, CORES),
    )
    return dict(json.loads(ran.stdout)["work_results"][0])


@pytest.mark.parametrize("work", ["convnet", "callable"])
def test_the_ratio_of_a_busy_machine_is_that_of_a_quiet_one_or_is_not_claimed(work: str, tmp_path: Path) -> None:
    if work == "callable":
        (tmp_path / "own_calls.py").write_text(CALLABLES)
        contestants = [f"python:call=own_calls.{name}:path={tmp_path}" for name in ("threads_that_meet", "one_thread")]
    else:
        contestants = list(CONTESTANTS)
        for name in contestants:
            pytest.importorskip(name, reason="`make test-thorough` installs it and runs this")
    with busy(2):
        loaded = raced(work, contestants, tmp_path)
    if loaded["no_verdict_code"]:
        assert loaded["no_verdict_code"] in ("E_BUSY_MACHINE", "E_THROTTLED")
        assert not loaded["comparisons"]
        return
    quiet = raced(work, contestants, tmp_path)
    [under_load], [alone] = loaded["comparisons"], quiet["comparisons"]
    low, high = under_load["interval"]
    assert low <= alone["ratio"] <= high
