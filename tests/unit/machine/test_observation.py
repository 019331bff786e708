"""What happens while the doctor observes, from the kernel's counters at both ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairlap.machine.doctor.observation import BusyProcess, Observed, observe

from .machines import Files, built

_TICKS = os.sysconf("SC_CLK_TCK")


def _process(name: str, ticks: int) -> str:
    return f"17 ({name}) R 1 17 17 0 -1 4194304 1 0 0 0 {ticks} 0 0 0 20 0 1 0 5 1 1\n"


def _observed_between(tmp_path: Path, before: Files, after: Files, seconds: float) -> Observed:
    root, now_s = built(tmp_path, before), [50.0]

    def passes(_: float) -> None:
        built(tmp_path, after)
        now_s[0] += seconds

    return observe(root, seconds, passes, lambda: now_s[0])


def test_every_counter_is_compared_between_both_ends(tmp_path: Path) -> None:
    before = {
        "proc/stat": "cpu  100 10 50 1000 40 5 5 0 30 0\n",
        "proc/17/stat": _process("a (b) c", 100),
        "proc/18/stat": _process("idle", 100),
        "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n",
        "proc/pressure/memory": "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n",
        "proc/vmstat": "nr_free_pages 5\npswpin 10\npswpout 20\n",
        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "4\n",
    }
    after = {
        "proc/stat": f"cpu  {100 + 2 * _TICKS} 10 50 {1000 + _TICKS} 40 5 5 {_TICKS} 99 0\n",
        "proc/17/stat": _process("a (b) c", 100 + _TICKS),
        "proc/18/stat": _process("idle", 100),
        "proc/19/stat": _process("began meanwhile", 90),
        "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n",
        "proc/pressure/memory": "some avg10=0.00 total=200000\nfull avg10=0.00 total=0\n",
        "proc/vmstat": "nr_free_pages 5\npswpin 12\npswpout 21\n",
        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "6\n",
    }
    seen = _observed_between(tmp_path, before, after, 2.0)
    assert seen == Observed(
        seconds=2.0,
        others_busy_cores=1.0,
        busiest=(BusyProcess(17, "a (b) c", 0.5),),
        steal_share=0.25,
        waited_share=0.5,
        memory_waited_share=0.1,
        pages_swapped=3,
        thermal_events=2,
    )


def test_a_machine_without_counters_can_be_observed(tmp_path: Path) -> None:
    seen = _observed_between(tmp_path, {}, {}, 1.0)
    assert (seen.others_busy_cores, seen.steal_share) == (0.0, None)


def test_a_counter_that_falls_counts_as_0(tmp_path: Path) -> None:
    before = {"proc/stat": "cpu  900 0 0 900 0 0 0 900\n", "proc/vmstat": "pswpin 9\n"}
    after = {"proc/stat": "cpu  100 0 0 100 0 0 0 100\n", "proc/vmstat": "pswpin 1\n"}
    seen = _observed_between(tmp_path, before, after, 1.0)
    assert (seen.others_busy_cores, seen.pages_swapped) == (0.0, 0)


@pytest.mark.sanitized
def test_a_busy_process_on_this_machine_is_seen() -> None:
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        seen = observe(seconds=1.0)
    finally:
        spinner.kill()
        spinner.wait()
    # Its share depends on who else runs here; that it ran at all does not.
    assert seen.others_busy_cores > 0
