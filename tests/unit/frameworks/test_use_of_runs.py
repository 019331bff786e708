"""CPU time and peak memory of a program's runs, against what `os.wait4` gives a small process that runs it by hand."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from fairlap.frameworks.contract import Contestant, Settings
from fairlap.frameworks.programs.command import CommandLine
from fairlap.meters.memory import MemoryMeter
from fairlap.models.registry import find
from fairlap.models.workload import Workload

BY_HAND = """
import json, os, sys
child = os.fork()
if not child:
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]))
"""
BURN = "import time\nwhile time.process_time() < 0.1: pass\n"
HOLDS = "b'x' * ({mib} << 20)"


def by_hand(*words: str) -> tuple[float, float]:
    """CPU seconds and bytes."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BY_HAND, *words], capture_output=True, text=True, check=True
    )
    cpu_s, peak = json.loads(done.stdout.splitlines()[-1])
    return cpu_s, peak


def measured(runs: int, *words: str) -> tuple[list[float], dict[str, int], dict[str, str]]:
    """CPU times in nanoseconds, and the memory that its worker would report."""
    found = find("callable")
    work = Workload(found.spec, found.package, 1, "infer", "fp32", {}, {"ticket": np.ones((1, 4), np.float32)})
    made: Contestant = CommandLine().prepare(
        work, Settings(1, options={"run": shlex.join(words)}), lambda name: nullcontext()
    )
    memory = MemoryMeter("cpu")
    memory.prepared("elsewhere")
    memory.before_running(made)
    call = made.bind(work.inputs)
    for _ in range(runs + 1):
        call()
    assert made.cpu_times is not None
    times_ns = list(made.cpu_times.newest_ns(runs))
    memory.ran(made)
    report = memory.result()
    return times_ns, report.bytes, report.absent


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


@pytest.mark.slow_but("12")
@pytest.mark.parametrize("mib", [12, 800])
def test_the_peak_is_that_of_a_run_by_hand_also_where_the_worker_is_larger(mib: int) -> None:
    words = python(HOLDS.format(mib=mib))
    _, expected = by_hand(*words)
    _, layers, _ = measured(1, *words)
    assert layers["peak"] == pytest.approx(expected, rel=0.02, abs=2 << 20)  # of pages that the system keeps of files


def test_the_peak_of_a_tree_is_that_of_its_largest_process() -> None:
    words = python(f"import os, subprocess; subprocess.run({python(HOLDS.format(mib=300))!r})")
    _, expected = by_hand(*words)
    _, layers, _ = measured(1, *words)
    assert layers["peak"] == pytest.approx(expected, rel=0.02)
    assert layers["peak"] > 300 << 20


def test_a_program_smaller_than_any_process_that_can_start_it_has_a_reason_and_no_peak() -> None:
    _, layers, absent = measured(1, "true")
    assert "peak" not in layers
    assert absent["peak"]


def test_cpu_time_counts_that_of_children_and_no_sleep() -> None:
    burning = python(f"import os, subprocess; subprocess.run({python(BURN)!r})")
    expected_s = min(by_hand(*burning)[0] for _ in range(3))  # starting takes longer beside other programs
    times_ns, _, _ = measured(3, *burning)
    assert len(times_ns) == 3
    assert min(times_ns) == pytest.approx(expected_s * 1e9, rel=0.3)  # most of it is 0.1 s, the rest two starts
    assert min(times_ns) > 0.1e9
    sleeping, _, _ = measured(2, "sleep", "0.1")
    assert min(sleeping) < 0.03e9


def test_a_program_that_reports_into_a_file_finds_none_of_the_run_before(tmp_path: Path) -> None:
    """The run for the peak is one like the others."""
    (tmp_path / "once.sh").write_text('test -e "$1" && exit 9\necho 5 ms > "$1"\n')
    found = find("callable")
    work = Workload(found.spec, found.package, 1, "infer", "fp32", {}, {"ticket": np.ones((1, 4), np.float32)})
    options = {"run": "sh once.sh {report}", "folder": str(tmp_path), "reported": "number"}
    made = CommandLine().prepare(work, Settings(1, options=options), lambda name: nullcontext())
    memory = MemoryMeter("cpu")
    call = made.bind(work.inputs)
    call()
    memory.ran(made)
    call()
    assert made.own_times is not None
    assert made.own_times.newest_ns(2)[-1] == 5e6
