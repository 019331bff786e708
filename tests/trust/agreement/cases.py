"""What is compared with a loop by hand: fairlap's command, the figure in its rows, and the program of the loop."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BY_HAND = Path(__file__).parent / "by_hand"
FRAMEWORKS = ("torch", "jax", "tensorflow:graph", "onnxruntime")
TRAINING = ("torch", "jax", "tensorflow:graph")
SERVED_WITHIN_MS = 20
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    name: str
    command: Sequence[str]  # of fairlap, without --on and --threads
    figure: Callable[[Row], float]
    allowed: float = 0.05  # the ratio is off by at most this
    contestants: Sequence[str] = FRAMEWORKS
    given: Callable[[Row], Sequence[str]] = field(default=lambda row: ())  # further arguments of the loop
    scenario: str = ""  # of the loop, if it has another name
    model_file: str = ""  # of ONNX Runtime
    loop: str = ""  # the loop's program, if it is none of a framework's
    threads: Sequence[int] = (1, 2)
    is_race: bool = True  # in processes with memory settings of fairlap's

    def by_hand(self, contestant: str, threads: int, row: Row, models: Path) -> list[str]:
        framework = contestant.partition(":")[0]
        scenario, given = self.scenario or self.name.replace(" ", "_"), list(self.given(row))
        if self.loop:
            return [sys.executable, str(BY_HAND / self.loop), *given]
        if framework == "onnxruntime":
            given = [str(models / self.model_file), *given]
        return [sys.executable, str(BY_HAND / f"with_{framework}.py"), scenario, str(threads), *given]


def value(column: str) -> Callable[[Row], float]:
    return lambda row: float(row[column]["value"])


def middle_rate(row: Row) -> Mapping[str, float]:
    """Find the trial whose rate is nearest to half of the largest one."""
    half = row["largest_rate_per_s"]["value"] / 2
    trials = [each for each in row["latency_by_rate"] if each["rate_per_s"]]
    return min(trials, key=lambda each: abs(each["rate_per_s"] - half))


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
        given=lambda row: (function, str(row["calls_per_sample"])),
        loop="untrusted_callables.py",
        threads=(1,),
        is_race=False,
    )


STEPS = ("--mode", "train", "--optimizer", "sgd:lr=0.0001,momentum=0.9")
LOAD = ("load", "convnet", "--batch", "1", "--p99", f"{SERVED_WITHIN_MS}ms")
COMPARE = ("compare", "convnet")
CASES = (
    Case("latency", COMPARE, value("latency_p50_ns"), 0.03, model_file="convnet-8.onnx"),
    Case("grad", (*COMPARE, "--mode", "grad"), value("latency_p50_ns"), 0.03, TRAINING),
    Case("train", (*COMPARE, *STEPS), value("latency_p50_ns"), 0.03, TRAINING),
    Case(
        "time to score",
        ("compare", "digits", "--mode", "train", "--to-score", "95%"),
        value("time_to_score_s"),
        contestants=TRAINING,
        given=lambda row: [str(int(row["steps_to_score"]))],
        scenario="to_score",
    ),
    Case(
        "fed",
        (*COMPARE, "--data", "synthetic"),
        lambda row: 8e9 / value("pipeline_throughput_per_s")(row),
        model_file="convnet-8.onnx",
    ),
    Case("generation", ("compare", "characters_generate"), value("latency_p50_ns"), model_file="characters.onnx"),
    Case(
        "load at half of the largest rate",
        LOAD,
        lambda row: middle_rate(row)["p50_ns"],
        given=lambda row: [str(middle_rate(row)["rate_per_s"])],
        scenario="at_rate",
        model_file="convnet-1.onnx",
    ),
    Case(
        "largest rate",
        LOAD,
        value("largest_rate_per_s"),
        given=lambda row: [str(SERVED_WITHIN_MS * 1e6)],
        scenario="largest_rate",
        model_file="convnet-1.onnx",
    ),
    Case(
        "ranks",
        (*COMPARE, *STEPS, "--processes", "2"),
        value("latency_p50_ns"),
        contestants=TRAINING,
        threads=(1,),
    ),
    Case(
        "a program",
        ("compare", "--command", f"program={sys.executable} -c 'sum(range(1_000_000))'"),
        value("latency_p50_ns"),
        contestants=("program",),
        loop="program.py",
        threads=(1,),
    ),
    Case(
        "a callable",
        ("compare", "callable", "--seconds", "0.2"),
        value("latency_p50_ns"),
        0.03,
        contestants=(f"python:call=plain_callable.call:path={BY_HAND}",),
        loop="plain_callable.py",
        threads=(1,),
    ),
    untrusted("one_us", math.inf),
    untrusted("fifty_us", 0.03),
    untrusted("five_ms", 0.03),
)
