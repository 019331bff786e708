"""With programs that keep every core busy, no ratio is claimed that is a property of the load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

CORES = sorted(os.sched_getaffinity(0))[:2]
CONTESTANTS = ("torch", "onnxruntime")

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


def raced() -> dict[str, Any]:
    """The work's result in the JSON of a race on two cores."""
    for name in CONTESTANTS:
        pytest.importorskip(name, reason="`make test-thorough` installs it and runs this")
    command = [sys.executable, "-m", "fairlap", "compare", "convnet", "--on", ",".join(CONTESTANTS)]
    ran = subprocess.run(
        [*command, "--blocks", "6", "--threads", "2", "--json", "--quiet"],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, CORES),
    )
    return dict(json.loads(ran.stdout)["work_results"][0])


def test_the_ratio_of_a_busy_machine_is_that_of_a_quiet_one_or_is_not_claimed() -> None:
    with busy(2):
        loaded = raced()
    if loaded["no_verdict_code"]:
        assert loaded["no_verdict_code"] in ("E_BUSY_MACHINE", "E_THROTTLED")
        assert not loaded["comparisons"]
        return
    quiet = raced()
    [under_load], [alone] = loaded["comparisons"], quiet["comparisons"]
    low, high = under_load["interval"]
    assert low <= alone["ratio"] <= high
