"""What is compared with a loop by hand: fairlap's command, the figure in its rows, and the program of the loop."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from .loop import LoopTurn
from .race_in_turns import TurnOf

BY_HAND = Path(__file__).parent / "by_hand"
FRAMEWORKS = ("torch", "jax", "tensorflow:graph", "onnxruntime")
TRAINING = ("torch", "jax", "tensorflow:graph")
SERVED_WITHIN_MS = 20
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
    model_file: str = ""  # of ONNX Runtime
    loop: str = ""  # the loop's program, if it is none of a framework's
    threads: Sequence[int] = (1, 2)
    is_stopped: bool = True  # the loop, between its turns
    is_race: bool = True  # in processes with memory settings of fairlap's

    def loop_command(self, contestant: str, threads: int, models: Path) -> list[str]:
        framework = contestant.partition(":")[0]
        scenario = self.scenario or self.name.replace(" ", "_")
        if self.loop:
            return [sys.executable, str(BY_HAND / self.loop), *([self.scenario] if self.scenario else [])]
        model = [str(models / self.model_file)] if framework == "onnxruntime" else []
        return [sys.executable, str(BY_HAND / f"with_{framework}.py"), scenario, str(threads), *model]


def value(column: str) -> Callable[[Row], float]:
    return lambda row: float(row[column]["value"])


def middle_rate(row: Row) -> Mapping[str, float]:
    """Find the trial whose rate is nearest to half of the largest one."""
    half = row["largest_rate_per_s"]["value"] / 2
    trials = [each for each in row["latency_by_rate"] if each["rate_per_s"]]
    return min(trials, key=lambda each: abs(each["rate_per_s"] - half))


def steps_of(turns: LoopTurns, row: Row) -> float:
    """Multiply the mean step with the steps to the score."""
    return float(row["steps_to_score"]) * mean_of(turns, row) / 1e9


def at_middle_rate(turns: LoopTurns, row: Row) -> float:
    rate_per_s = middle_rate(row)["rate_per_s"]
    return median_of([turn for turn in turns if turn.given == [rate_per_s]], row)


def untrusted(function: str, allowed: float) -> Case:
    """Near the floor no ratio is asked for: the row warns of that."""
    task = str(BY_HAND / "untrusted_task.py")
    return Case(
        "untrusted callables",
        (
            *("time", f"{BY_HAND / 'untrusted_callables.py'}:{function}", "--untrusted", "--budget", "6s"),
            *("--reference", f"{task}:exact_{function}", "--inputs", f"{task}:draw_{function}"),
        ),
        lambda row: float(row["median_ns"]),
        allowed,
        contestants=(function,),
        turn_of=None,
        given=lambda row: [row["calls_per_sample"]],
        scenario=function,
        loop="untrusted_callables.py",
        threads=(1,),
        is_race=False,
    )


def of_users(name: str, module: str, function: str, contestant: str) -> list[Case]:
    """Time the calls, the gradients and the steps of training of a model that a user has written."""
    source = f"tests.trust.agreement.by_hand.{module}:{function}"
    learning = ("--loss", "cross_entropy", "--optimizer", "sgd:lr=0.0001,momentum=0.9")
    asked = {"infer": (), "grad": ("--loss", "cross_entropy"), "train": learning}
    return [
        Case(
            f"{mode} of {name}",
            ("compare", source, "--mode", mode, *options),
            value("latency_p50_ns"),
            0.03,
            contestants=(contestant,),
            scenario=f"{function}_{mode}",
            threads=(1,),
        )
        for mode, options in asked.items()
    ]


STEPS = ("--mode", "train", "--optimizer", "sgd:lr=0.0001,momentum=0.9")
LOAD = ("load", "convnet", "--batch", "1", "--p99", f"{SERVED_WITHIN_MS}ms")
COMPARE = ("compare", "convnet")
IN_A_SINGLE_TURN = ("--seconds", "3")  # as long as the turns of the loop around it, or a stall decides the figure
FILES_TASK = "tests.trust.agreement.by_hand.files_task"
CASES = (
    Case("latency", COMPARE, value("latency_p50_ns"), 0.03, model_file="convnet-8.onnx"),
    Case("grad", (*COMPARE, "--mode", "grad"), value("latency_p50_ns"), 0.03, TRAINING),
    Case("train", (*COMPARE, *STEPS), value("latency_p50_ns"), 0.03, TRAINING),
    Case(
        "time to score",
        ("compare", "digits", "--mode", "train", "--to-score", "95%"),
        value("time_to_score_s"),
        contestants=TRAINING,
        turn_of="steps",
        by_hand_figure=steps_of,
        scenario="to_score",
    ),
    Case(
        "fed",
        (*COMPARE, "--data", "synthetic", *IN_A_SINGLE_TURN),
        lambda row: 8e9 / value("pipeline_throughput_per_s")(row),
        by_hand_figure=mean_of,
        model_file="convnet-8.onnx",
    ),
    Case("generation", ("compare", "characters_generate"), value("latency_p50_ns"), model_file="characters.onnx"),
    Case(
        "generation of a model of transformers",
        ("compare", f"hf:{BY_HAND / 'small_llama'}", "--generate", "64:32"),
        value("latency_p50_ns"),
        contestants=("torch",),
        scenario="own_generation",
    ),
    Case(
        "load at half of the largest rate",
        LOAD,
        lambda row: middle_rate(row)["p50_ns"],
        turn_of="steps",
        by_hand_figure=at_middle_rate,
        scenario="at_rate",
        model_file="convnet-1.onnx",
    ),
    Case(
        "largest rate",
        LOAD,
        value("largest_rate_per_s"),
        turn_of=None,
        given=lambda row: [SERVED_WITHIN_MS * 1e6],
        scenario="largest_rate",
        model_file="convnet-1.onnx",
    ),
    Case(
        "ranks",
        (*COMPARE, *STEPS, "--processes", "2", *IN_A_SINGLE_TURN),
        value("latency_p50_ns"),
        contestants=TRAINING,
        threads=(1,),
        is_stopped=False,
    ),
    Case(
        "from file to answer",
        (
            *("compare", f"{FILES_TASK}:model", "--items", str(BY_HAND), "--after", f"{FILES_TASK}:best"),
            *("--before", f"{FILES_TASK}:read,{FILES_TASK}:spectrum"),
        ),
        value("judged"),
        contestants=("torch",),
        turn_of="steps",
        loop="from_file.py",
        threads=(1,),
    ),
    Case(
        "a program",
        ("compare", "--command", f"program={sys.executable} -c 'sum(range(1_000_000))'"),
        value("latency_p50_ns"),
        turn_of=None,
        contestants=("program",),
        loop="program.py",
        threads=(1,),
    ),
    Case(
        "a callable",
        ("compare", "callable", "--seconds", "0.2"),
        value("latency_p50_ns"),
        0.03,
        turn_of=None,
        contestants=(f"python:call=plain_callable.call:path={BY_HAND}",),
        loop="plain_callable.py",
        threads=(1,),
    ),
    *of_users("a user's convolutions", "users_torch", "convolutions", "torch"),
    *of_users("a user's transformer", "users_torch", "transformer", "torch"),
    *of_users("a Keras model", "users_keras", "network", "tensorflow:graph"),
    *of_users("a JAX function", "users_jax", "residual_network", "jax"),
    untrusted("one_us", math.inf),
    untrusted("fifty_us", 0.03),
    untrusted("five_ms", 0.03),
)
