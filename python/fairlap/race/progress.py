"""Progress of a race on standard error: a live line in a terminal, elsewhere lines.

There is one for each process, and one for every half minute in which nothing else is printed.

Nothing here shows a leader: interim intervals come from the stopping rule, which sees the times of each block sorted.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import click

from fairlap import quantity_text
from fairlap.printable import one_line, unfiltered
from fairlap.race.heartbeat import EVERY_S, Heartbeat
from fairlap.race.planning.plan import Plan
from fairlap.race.stopping import blinded_half_width
from fairlap.scenarios.process_result import ProcessResult
from fairlap.secrets import without_secrets

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


_OF_A_KERNEL = "JPY_PARENT_PID"  # Jupyter sets it for kernels, and what they start inherits it


class Progress(Protocol):
    """Notified of every step; a context manager, so that the terminal is restored.

    ``say`` shows what happened, always. ``announce`` shows what begins and may take long, unless progress is silent.
    """

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def say(self, line: str) -> None: ...
    def announce(self, line: str) -> None: ...
    def began(self, process: ProcessResult) -> None: ...
    def goes_on(self, process: ProcessResult, reached: str, left_s: float) -> None: ...  # in a turn of many parts
    def ended(self, done: int, process: ProcessResult) -> None: ...
    def block_over(self, processes: Sequence[ProcessResult]) -> None: ...


def progress_for(plan: Plan, budget_s: float | None = None, *, quiet: bool) -> Progress:
    if quiet:
        return Silence()
    terminal = sys.stderr is not None and sys.stderr.isatty()
    terminal = terminal and _OF_A_KERNEL not in os.environ  # `!fairlap` has a terminal whose every frame is kept
    return Live(plan, budget_s) if terminal else Lines(plan, budget_s)


class Silence:
    """Shows only what happened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def say(self, line: str) -> None:
        click.echo(f"fairlap: {one_line(without_secrets(line))}", err=True)
        if sys.stderr is not None:
            sys.stderr.flush()

    def announce(self, line: str) -> None:
        return None

    def began(self, process: ProcessResult) -> None:
        return None

    def goes_on(self, process: ProcessResult, reached: str, left_s: float) -> None:
        return None

    def ended(self, done: int, process: ProcessResult) -> None:
        return None

    def block_over(self, processes: Sequence[ProcessResult]) -> None:
        return None


class Messages(Silence):
    """Shows what begins, too, and that it still runs; nothing of single processes."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._begun = ""
        self._heartbeat = Heartbeat(self._still_running, every_s)

    def __enter__(self) -> Self:
        self._heartbeat.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._heartbeat.__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        super().say(line)
        self._heartbeat.printed()

    def announce(self, line: str) -> None:
        self._begun = line
        self.say(line)

    def _still_running(self) -> None:
        if text := self.running():
            self.say(f"still running: {text}")

    def running(self) -> str:
        """Describe what goes on, and how much time is left where that is known; empty where nothing has begun."""
        return self._begun


class Lines(Messages):
    """One line for each process that has ended: for logs."""

    def __init__(self, plan: Plan, budget_s: float | None = None, every_s: float = EVERY_S) -> None:
        super().__init__(every_s)
        self._plan = plan
        self._of = "" if plan.until_decided else f"/{plan.process_count()}"
        self._course = Course(plan, budget_s)

    def announce(self, line: str) -> None:
        super().announce(line)
        self._course.now = line

    def began(self, process: ProcessResult) -> None:
        self._course.began(process)

    def goes_on(self, process: ProcessResult, reached: str, left_s: float) -> None:
        self._course.goes_on(process, reached, left_s)

    def ended(self, done: int, process: ProcessResult) -> None:
        self._course.ended(done, process)
        click.echo(one_line(f"[{done}{self._of}] {process_line(process, self._plan)}"), err=True)
        sys.stderr.flush()
        self._heartbeat.printed()

    def running(self) -> str:
        return " · ".join(filter(None, (self._course.now, self._course.left)))


class Live(Messages):
    """One line: how far the race is, what runs now, the time left, the width of the intervals.

    A race until decided shows the share of its budget that is spent, since its number of processes is unknown.
    """

    def __init__(self, plan: Plan, budget_s: float | None) -> None:
        super().__init__()
        self._plan = plan
        self._course = Course(plan, budget_s)
        total = plan.process_count() if self._course.budget_s is None else self._course.budget_s
        self._bar = _bar(counted=self._course.budget_s is None)
        self._task = self._bar.add_task("", total=total, now="", left="", width="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, line: str) -> None:
        self._bar.console.print(f"fairlap: {one_line(line)}", markup=False, highlight=False)

    def began(self, process: ProcessResult) -> None:
        self._course.began(process)
        self._show(now=self._course.now)

    def goes_on(self, process: ProcessResult, reached: str, left_s: float) -> None:
        self._course.goes_on(process, reached, left_s)
        self._show(now=self._course.now)

    def ended(self, done: int, process: ProcessResult) -> None:
        if not process.finished:
            self.say(process_line(process, self._plan))
        self._course.ended(done, process)
        completed = done if self._course.budget_s is None else self._course.elapsed_s()
        self._show(completed=completed, left=self._course.left)

    def block_over(self, processes: Sequence[ProcessResult]) -> None:
        self._course.block_over(processes)
        if self._course.width:
            self._show(width=self._course.width)

    def _show(self, **fields: Any) -> None:
        self._bar.update(self._task, refresh=True, **fields)


class Course:
    """What runs now, how wide the widest interval is, and how much time is left: in all, or else at most."""

    def __init__(self, plan: Plan, budget_s: float | None) -> None:
        self.now, self.left, self.width = "", "", ""
        self._plan = plan
        self._time_left = TimeLeft(plan)
        self._began_s = time.monotonic()
        self._ends_by_s = math.inf if budget_s is None else self._began_s + budget_s
        self.budget_s = budget_s if plan.until_decided else None

    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    def began(self, process: ProcessResult) -> None:
        title = self._plan.title_of(self._plan.work_with(process.work_id))
        self.now = one_line(f"block {process.block} · {process.conditions} · {process.contestant} · {title}")

    def goes_on(self, process: ProcessResult, reached: str, left_s: float) -> None:
        seconds = min(left_s, max(self._ends_by_s - time.monotonic(), 0.0))
        self.now = (
            f"block {process.block} · {one_line(process.contestant)} · {reached} · at most "
            f"{quantity_text.rough_duration(seconds)} left in this block"
        )

    def ended(self, done: int, process: ProcessResult) -> None:
        self._time_left.ended(process)
        if self.budget_s is None:
            self.left = f"{quantity_text.rough_duration(self._time_left.seconds(done))} left"
        else:
            self.left = f"at most {quantity_text.rough_duration(max(self.budget_s - self.elapsed_s(), 0.0))} left"

    def block_over(self, processes: Sequence[ProcessResult]) -> None:
        """Find the width when every work has another block: of many works it takes as long as several turns."""
        if len({process.block for process in processes}) % len(self._plan.works):
            return
        width = blinded_half_width(self._plan, processes)
        if math.isfinite(width):
            self.width = f"intervals ± {quantity_text.share(width)}"


def _bar(*, counted: bool) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = ("{task.fields[left]}", "{task.fields[width]}", "{task.fields[now]}")
    texts = [TextColumn(column, markup=False) for column in columns]
    numbers = [MofNCompleteColumn()] if counted else []
    console = Console(file=unfiltered(sys.stderr))
    # Drawn when something has changed: a thread that draws it ten times a second would run beside what is timed.
    return Progress(BarColumn(20), *numbers, *texts, console=console, transient=True, auto_refresh=False)


class TimeLeft:
    """From how long each contestant's processes have taken; those not seen yet take as long as the others."""

    def __init__(self, plan: Plan) -> None:
        self._all = [
            (plan.works[block.work].id, plan.contestants[place].text) for block in plan.blocks for place in block.order
        ]
        self._took_s: dict[tuple[str, str], list[float]] = defaultdict(list)

    def ended(self, process: ProcessResult) -> None:
        self._took_s[process.work_id, process.contestant].append(process.elapsed_s)

    def seconds(self, done: int) -> float:
        """NaN before anything has ended. ``done`` processes of the plan are behind us, in its order."""
        every = [seconds for own in self._took_s.values() for seconds in own]
        if not every:
            return math.nan
        usual_s = sum(every) / len(every)
        means_s = {key: sum(own) / len(own) for key, own in self._took_s.items()}
        return sum(means_s.get(key, usual_s) for key in self._all[done:])


def process_line(process: ProcessResult, plan: Plan) -> str:
    """Without its time: a reader who sees who leads may end the race when it suits."""
    ended = f"finished in {quantity_text.seconds(process.elapsed_s)}" if process.finished else _trouble(process)
    title = plan.title_of(plan.work_with(process.work_id))
    return f"block {process.block} {process.conditions} {process.contestant} on {title}: {ended}"


def _trouble(process: ProcessResult) -> str:
    return f"{process.outcome.replace('_', ' ')}: {process.message}" if process.message else process.outcome
