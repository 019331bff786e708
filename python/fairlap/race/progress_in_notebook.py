"""Progress of a race in the kernel of a notebook: one line under the cell, which the next one replaces.

A kernel has no terminal, and lines that are printed stay in the notebook's file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from fairlap import quantity_text
from fairlap.printable import one_line
from fairlap.race.planning.plan import Plan
from fairlap.race.progress import Course, Progress, Silence, process_line
from fairlap.scenarios.process_result import ProcessResult


def progress_in_kernel(plan: Plan, budget_s: float | None) -> Progress | None:
    """None where this is no kernel of a notebook. IPython is not imported to find out: a kernel has."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return OneLine(plan, budget_s) if getattr(shell, "kernel", None) is not None else None


class OneLine(Silence):
    """How far the race is, what runs now, the time left, the width of the intervals.

    It changes between processes alone, so that nothing of it runs while a contestant is timed. What happens, such as a
    lost process, is a line of its own.
    """

    def __init__(self, plan: Plan, budget_s: float | None) -> None:
        self._plan = plan
        self._course = Course(plan, budget_s)
        self._of = "" if plan.until_decided else f" of {plan.process_count()}"
        self._done = 0
        self._handle: Any = None

    def __enter__(self) -> Self:
        from IPython.display import display

        self._handle = display(_plain("the race begins"), raw=True, display_id=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._show(f"{self._done}{self._of} processes in {quantity_text.rough_duration(self._course.elapsed_s())}")

    def announce(self, line: str) -> None:
        self._show(line)

    def began(self, process: ProcessResult) -> None:
        self._course.began(process)
        self._show_course()

    def goes_on(self, process: ProcessResult, reached: str, left_s: float) -> None:
        self._course.goes_on(process, reached, left_s)
        self._show_course()

    def ended(self, done: int, process: ProcessResult) -> None:
        if not process.finished:
            self.say(process_line(process, self._plan))
        self._course.ended(done, process)
        self._done = done
        self._show_course()

    def block_over(self, processes: Sequence[ProcessResult]) -> None:
        self._course.block_over(processes)

    def _show_course(self) -> None:
        done = f"{self._done}{self._of} processes"
        self._show(" · ".join(filter(None, (done, self._course.left, self._course.width, self._course.now))))

    def _show(self, line: str) -> None:
        if self._handle is not None:  # it is None until the race is entered
            self._handle.update(_plain(line), raw=True)


def _plain(line: str) -> dict[str, str]:
    return {"text/plain": f"fairlap: {one_line(line)}"}
