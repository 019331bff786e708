"""Processes during which temperature or power slowed the GPU down are run again, after a pause to recover.

Which are, the device's readings decide, and no times. Only calls are repeated: epochs and trials go on from what they
learnt. A GPU that stays slow is not waited for longer, and then the race claims nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from fairlap import quantity_text
from fairlap.meters.device_slowdown import MOST_SLOWED, SLOWED
from fairlap.race.processes.one_process import ProcessRun

MOST_REPEATS = 3  # of one process
_FIRST_PAUSE_S = 2.0  # each further one is twice as long


class RepeatedProcesses:
    """Of one race. ``may_go_on`` says whether its budget allows for more."""

    def __init__(self, say: Callable[[str], None], may_go_on: Callable[[], bool]) -> None:
        self._say, self._may_go_on = say, may_go_on
        self._gave_up = False

    def undisturbed(
        self, run: ProcessRun, measure: Callable[[ProcessRun], object], another: Callable[[], ProcessRun]
    ) -> ProcessRun:
        """Measure the process, and others made by ``another`` in its place for as long as the GPU is slowed down."""
        repeats = 0
        while True:
            measure(run)
            run.result.repeats = repeats
            slowed = run.result.machine.get(SLOWED, 0.0)
            if slowed <= MOST_SLOWED or self._gave_up or run.has_steps or not run.result.finished:
                return run
            if repeats >= MOST_REPEATS or not self._may_go_on():
                self._gave_up = True
                return run
            pause_s = _FIRST_PAUSE_S * 2**repeats
            repeats += 1
            self._say(
                f"temperature or power slowed the GPU down for {quantity_text.share(slowed)} of the time; "
                f"{run.result.contestant} runs again after {quantity_text.duration(1e9 * pause_s)}"
            )
            time.sleep(pause_s)
            run = another()
