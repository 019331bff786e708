"""A case: fairlap's command, the figure in its rows, and the program of the loop that it is compared with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from .loop import LoopTurn
from .race_in_turns import TurnOf

BY_HAND = Path(__file__).parent / "by_hand"
FILES = "{files}"  # in commands and in arguments of loops: the folder with what is written for all cases
FRAMEWORKS = ("torch", "jax", "tensorflow:graph", "onnxruntime")
TRAINING = ("torch", "jax", "tensorflow:graph")
READS_A_FILE = ("onnxruntime", "litert")  # in the loop by hand
STEPS = ("--optimizer", "sgd:lr=0.0001,momentum=0.9")
Row = Mapping[str, Any]
LoopTurns = Sequence[LoopTurn]


def all_of(turns: LoopTurns) -> list[float]:
    return [each for turn in turns for each in turn.taken]


def median_of(turns: LoopTurns, row: Row) -> float:
    return median(all_of(turns))


def mean_of(turns: LoopTurns, row: Row) -> float:
    return fmean(all_of(turns))


@dataclass(frozen=True)
class Case:
    name: str
    command: Sequence[str]  # of fairlap, without --on and --threads
    figure: Callable[[Row], float]
    allowed: float = 0.05  # the ratio is off by at most this
    contestants: Sequence[str] = FRAMEWORKS
    turn_of: TurnOf | None = "calls"  # after which the loop has its turns; None: one after the race
    given: Callable[[Row], Sequence[float]] = field(default=lambda row: ())  # in the turn after the race
    by_hand_figure: Callable[[LoopTurns, Row], float] = median_of
    scenario: str = ""  # of the loop, if it has another name
    model_file: str = ""  # of a loop that reads one
    loop: str = ""  # the loop's program, if it is none of a framework's
    arguments: Sequence[str] = ()  # of that program
    threads: Sequence[int] = (1, 2)
    is_stopped: bool = True  # the loop, between its turns
    is_race: bool = True  # in processes with memory settings of fairlap's
    writes: str = ""  # what users_files.py writes first
    of_model: str = ""  # beside whose turns the loop has its own, where the command races several
    needs: str = ""  # a package that the models import, and that no extra installs

    def loop_command(self, contestant: str, threads: int, files: Path) -> list[str]:
        framework = contestant.partition(":")[0]
        if self.loop:
            return [sys.executable, str(BY_HAND / self.loop), *in_folder(self.arguments, files)]
        scenario = self.scenario or self.name.replace(" ", "_")
        model = [str(files / self.model_file)] if framework in READS_A_FILE else []
        return [sys.executable, str(BY_HAND / f"with_{framework}.py"), scenario, str(threads), *model]

    def is_timed_in(self, contestant: str) -> bool:
        return without_slowdown(contestant) in self.contestants

    def is_of(self, model: str) -> bool:
        return self.of_model in ("", Path(model).stem)


def without_slowdown(contestant: str) -> str:
    return contestant.partition(":slowdown=")[0]


def in_folder(words: Sequence[str], files: Path) -> list[str]:
    return [word.replace(FILES, str(files)) for word in words]


def value(column: str) -> Callable[[Row], float]:
    return lambda row: float(row[column]["value"])
