"""A race whose parent is suspended: its workers wait without computing, none is lost, and its times stay right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fairlap.machine.processes import DEAD, process_ids, process_stat

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes are listed under /proc")]

MARK = "FAIRLAP_TEST_OF_A_SUSPENDED_RACE"
BLOCKS, SUSPENDED_S = 4, 6


def _family(mark: str, parent: int) -> list[int]:
    found = []
    for pid in process_ids():
        stat = process_stat(pid)
        try:
            is_ours = f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if is_ours and pid != parent and stat is not None and stat.state not in DEAD:
            found.append(pid)
    return found


def _processor_time_s(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_workers_of_a_suspended_race_wait_and_are_not_lost(tmp_path: Path) -> None:
    file, mark = tmp_path / "race.json", tmp_path.name
    variables = {**os.environ, MARK: mark, "FAIRLAP_STORE": str(tmp_path / "runs.sqlite")}
    on = ["--on", "python:call=os.getpid,python:call=os.getppid", "--blocks", str(BLOCKS), "--seconds", "0.5"]
    command = [sys.executable, "-m", "fairlap", "compare", "callable", *on, "--quiet", "-o", str(file)]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as race:
        while len(_family(mark, race.pid)) < 2:
            assert race.poll() is None
            time.sleep(0.05)
        race.send_signal(signal.SIGSTOP)
        try:
            time.sleep(SUSPENDED_S / 2)  # a turn that had begun ends by itself
            waiting = _family(mark, race.pid)
            before_s = _processor_time_s(waiting)
            time.sleep(SUSPENDED_S / 2)
            assert _family(mark, race.pid) == waiting != []
            assert _processor_time_s(waiting) - before_s < 0.1
        finally:
            race.send_signal(signal.SIGCONT)
        _, errors = race.communicate(timeout=120)
    assert race.returncode == 0, errors
    assert not _family(mark, race.pid)
    run = json.loads(file.read_text())
    assert len(run["rows"]) == 2
    for row in run["rows"]:
        assert (row["outcome"], row["processes_finished"]) == ("finished", BLOCKS)
        assert row["latency_p99_ns"]["value"] < 1e9 * SUSPENDED_S / 10
