"""The scenario contract: what every scenario answers, so that no other room asks which one a work is.

A scenario is what a contestant is asked to do: calls, training to a score, load. ``scenario_of`` finds the one of a
work. What contestants are ranked by is decided by its ``judge``, once: verdict, rows, tables, charts, history and store
read that decision.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any, ClassVar, Literal, Protocol

from fairlap import verdict
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.plugins import SCENARIOS, class_at
from fairlap.request.race_request import DEFAULT_BUDGET_S, LONGEST_BY_DEFAULT_S
from fairlap.request.work import Work
from fairlap.scenarios.added import AddedFigure, JudgedBefore, Picture, Quantity
from fairlap.scenarios.process_result import Period, ProcessResult
from fairlap.scenarios.setting import E_SETTING, Setting

Unit = Literal["ns", "s", "1/s", "B", "1"]  # the last two are compared as they are
Better = Literal["lower", "higher"]
Processes = Mapping[str, Sequence[ProcessResult]]  # by contestant

_BUILT_IN = (
    "fairlap.scenarios.solving.scenario:Solving",
    "fairlap.scenarios.digits.scenario:Digits",
    "fairlap.scenarios.derivatives.scenario:Derivatives",
    "fairlap.scenarios.simulating.scenario:Simulating",
    "fairlap.scenarios.agents.scenario:LearningToAct",
    "fairlap.scenarios.file_to_answer.scenario:FileToAnswer",
    "fairlap.scenarios.passes.scenario:PassesOverData",
    "fairlap.scenarios.mixed_sizes.scenario:MixedSizes",
    "fairlap.scenarios.streams.scenario:StreamedAnswers",
    "fairlap.scenarios.load.scenario:LoadScenario",
    "fairlap.scenarios.learning.scenario:TrainingToAScore",
    "fairlap.scenarios.calls.calls_scenario:Calls",  # of everything that no other one is asked for
)
_NS = {"ns": 1.0, "s": 1e9, "B": 1.0, "1": 1.0}


def as_time_ns(value: float, unit: Unit) -> float:
    """As figures are compared: of a rate the time of one, so that a ratio is always one of times."""
    return 1e9 / value if unit == "1/s" else _NS[unit] * value


def of_time_ns(time_ns: float, unit: Unit) -> float:
    """Convert a time back into the unit."""
    return 1e9 / time_ns if unit == "1/s" else time_ns / _NS[unit]


@dataclass(frozen=True)
class Judged:
    """The figure that contestants are ranked by. Figures of different names are never compared."""

    by: str  # for people
    metric: verdict.Metric  # as the verdict compares it, which is always a time
    read: Callable[[ProcessResult], float | None]  # of one process, in ``unit``
    unit: Unit = "ns"
    of_rounds: bool = False  # built from the rounds of a block, so that its noise cancels
    # A process may lack it, and then its block does not count. Elsewhere a contestant that lacks it is not ranked.
    may_lack: bool = False
    period: Period = "turns"  # others must not have had the machine then
    of_slowest: bool = False  # nor then from single threads: it depends on the slowest calls
    is_named: bool = True  # where a change is described; the usual figure goes without saying

    @property
    def better(self) -> Better:
        return "higher" if self.unit == "1/s" else "lower"

    def time_ns(self, value: float) -> float:
        return as_time_ns(value, self.unit)

    def figure_ns(self, process: ProcessResult) -> float:
        """Read what this process is ranked by; not-a-number where it has no such figure."""
        value = self.read(process)
        return math.nan if value is None else self.time_ns(value)


@dataclass(frozen=True)
class Unqualified:
    """Why a contestant that did its work is not ranked."""

    why: str
    code: str


@dataclass(frozen=True)
class Ruling:
    """What a scenario decides of the contestants of one work, once their processes have ended."""

    judged: Judged
    unqualified: Mapping[str, Unqualified] = field(default_factory=dict)  # by contestant
    notices: Mapping[str, tuple[Notice, ...]] = field(default_factory=dict)  # by contestant, of its figure
    remark: str = ""  # what a title says of the figure


class Asked(Protocol):
    """What a plan asks of all of its works."""

    @property
    def to_score(self) -> float | None: ...
    @property
    def count_evaluation(self) -> bool: ...
    @property
    def scenario_settings(self) -> Mapping[str, str]: ...


class Scenario(ABC):
    """Has no state: one object serves all works."""

    judges_rounds: ClassVar[bool] = True  # whether more rounds in a block make the figure that is judged narrower
    after_turns: ClassVar[str] = ""  # "module:class" of what a process is asked for once its calls have been timed
    own_race: ClassVar[str] = ""  # "module:class" of an OwnRace, where contestants are not processes of fairlap's
    where: ClassVar[str] = ""  # these run, in titles; elsewhere the device and its threads are named
    race_side: ClassVar[str] = ""  # "module:class" of what it makes of a request: a RaceSide
    columns: ClassVar[str] = ""  # "module:class" of the definitions of its columns, where it is built in
    results_side: ClassVar[str] = ""  # "module:class" of what it computes for columns: a ResultsSide
    render_side: ClassVar[str] = ""  # "module:class" of how it is shown: a RenderSide
    command: ClassVar[str] = "compare"  # of fairlap, which races it
    data_seeds: ClassVar[tuple[int, ...]] = (0, 1, 2)  # draw weights and inputs, in turn, unless one is asked for
    # Of a race until decided without a budget: the usual one, and the longest with too few blocks for a claim.
    budgets_s: ClassVar[tuple[float, float]] = (DEFAULT_BUDGET_S, LONGEST_BY_DEFAULT_S)
    times_of_a_batch: ClassVar[tuple[str, ...]] = ()  # figures, by name, of which an item's time is a part
    settings: ClassVar[tuple[Setting[Any], ...]] = ()
    figures: ClassVar[tuple[AddedFigure, ...]] = ()
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    pictures: ClassVar[tuple[Picture, ...]] = ()
    judged_before: ClassVar[tuple[JudgedBefore, ...]] = ()  # the first of these that a row has

    @abstractmethod
    def is_asked(self, asked: Asked, work: Work) -> bool:
        """Whether this work asks its contestants for it."""

    @abstractmethod
    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        """Decide what contestants are ranked by. ``ranked`` are those that nothing else keeps from being ranked."""

    def has_result(self, work: Work, finished: Sequence[ProcessResult]) -> bool:
        """Whether a contestant has what the race is about, by those of its processes that finished."""
        return bool(finished)

    def reaches(self, work: Work) -> Iterable[str]:
        """List what it would read or write outside of fairlap's own folders. Asked of every work, its own or not."""
        return ()

    def may_share_process(self, work: Work) -> bool:
        """Whether a process may take this work after others, and others after it."""
        return False

    def threads_note(self, work: Work) -> str:
        """Say what a title adds to the number of threads."""
        return ""


def scenario_of(asked: Asked, work: Work) -> Scenario:
    return next(each for each in scenarios() if each.is_asked(asked, work))


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Those of installed packages come first, so that they can take over works of a built-in one."""
    return (*map(_at, sorted(each.value for each in entry_points(group=SCENARIOS))), *built_in_scenarios())


@cache
def built_in_scenarios() -> tuple[Scenario, ...]:
    """Only their columns are in a row, which does not depend on what is installed; others add figures to it."""
    return tuple(map(_at, _BUILT_IN))


def _at(place: str) -> Scenario:
    return class_at(place, Scenario, "the scenario")()  # type: ignore[type-abstract]


def quantities_of_scenarios() -> tuple[Quantity, ...]:
    return tuple(each for scenario in scenarios() for each in scenario.quantities)


def times_of_a_batch() -> frozenset[str]:
    return frozenset(each for scenario in scenarios() for each in scenario.times_of_a_batch)


def settings_of_scenarios() -> tuple[Setting[Any], ...]:
    return tuple(each for scenario in scenarios() for each in scenario.settings)


def require_settings(given: Mapping[str, str]) -> None:
    """Refuse what no scenario here asks for, and values that it cannot read."""
    known = {each.name: each for each in settings_of_scenarios()}
    for name in given:
        if name not in known:
            has = f"; installed ones have {', '.join(known)}" if known else ", and none is installed that has settings"
            raise InvalidRequest(f"no scenario has a setting named {name}{has}", code=E_SETTING)
        known[name].value_in(given)
