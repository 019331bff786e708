"""What is compared with a loop by hand: every scenario on models of fairlap's and of a user's."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping
from statistics import median

import numpy as np

from .case import BY_HAND, FILES, STEPS, TRAINING, Case, LoopTurns, Row, all_of, mean_of, median_of, value
from .cases_of_users import CASES_OF_USERS

SERVED_WITHIN_MS = 20
SOLVED_TO = 1e-6
STARTS_FILE = "lorenz.npy"


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


def time_to_error(turns: LoopTurns, row: Row) -> float:
    """Read off the line through the logarithms of the errors and of the medians of the times, by tolerance."""
    flat = all_of(turns)
    times, errors = defaultdict[float, list[float]](list), {}
    for tolerance, error, time_ns in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        errors[tolerance] = error
        times[tolerance].append(time_ns)
    tightest_first = sorted(times)
    assert errors[tightest_first[0]] < SOLVED_TO < errors[tightest_first[-1]]
    places = [math.log(errors[each]) for each in tightest_first]
    return float(
        np.exp(np.interp(math.log(SOLVED_TO), places, [math.log(median(times[each])) for each in tightest_first]))
    )


def solving(contestant: str, loop: str, needs: str = "") -> Case:
    return Case(
        f"solving with {contestant.partition(':')[0]}",
        (
            *("compare", "lorenz", "--mode", "solve", "--error", f"{SOLVED_TO:g}"),
            *("--tolerances", "1e-6,1e-8,1e-10", "--seconds", "2"),
        ),
        value("judged"),
        contestants=(contestant,),
        turn_of="steps",
        by_hand_figure=time_to_error,
        loop="solving.py",
        arguments=(loop, f"{FILES}/{STARTS_FILE}"),
        threads=(1,),
        needs=needs,
    )


def simulating(contestant: str, needs: str = "") -> Case:
    return Case(
        f"simulating with {contestant}",
        ("compare", "cartpole", "--mode", "simulate"),
        value("latency_p50_ns"),
        contestants=(contestant,),
        loop="simulating.py",
        arguments=(f"with_{contestant.replace(':', '_')}",),
        threads=(1,),
        needs=needs,
    )


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
        loop="untrusted_callables.py",
        arguments=(function,),
        threads=(1,),
        is_race=False,
    )


TRAINED = ("--mode", "train", *STEPS)
LOAD = ("load", "convnet", "--batch", "1", "--p99", f"{SERVED_WITHIN_MS}ms")
COMPARE = ("compare", "convnet")
IN_A_SINGLE_TURN = ("--seconds", "3")  # as long as the turns of the loop around it, or a stall decides the figure
FILES_TASK, PHOTO_TASK = (f"tests.trust.agreement.by_hand.{name}_task" for name in ("files", "photo"))
CASES = (
    Case("latency", COMPARE, value("latency_p50_ns"), 0.03, model_file="convnet-8.onnx"),
    Case(
        "forecast",
        ("compare", "tcn"),
        value("latency_p50_ns"),
        0.03,
        contestants=("torch", "jax", "onnxruntime"),
        model_file="tcn-8.onnx",
        threads=(1,),
    ),
    Case(
        "recurrent forecast",
        ("compare", "lstm_forecaster"),
        value("latency_p50_ns"),
        0.03,
        contestants=("torch", "jax", "onnxruntime"),
        model_file="lstm-8.onnx",
        threads=(1,),
    ),
    Case(
        "vision transformer",
        ("compare", "vit:tiny", "--batch", "1"),
        value("latency_p50_ns"),
        0.03,
        contestants=("torch", "jax"),
        threads=(1,),
    ),
    Case("grad", (*COMPARE, "--mode", "grad"), value("latency_p50_ns"), 0.03, TRAINING),
    Case("train", (*COMPARE, *TRAINED), value("latency_p50_ns"), 0.03, TRAINING),
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
        (*COMPARE, *TRAINED, "--processes", "2", *IN_A_SINGLE_TURN),
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
        arguments=("files_task", str(BY_HAND)),
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
    Case(
        "from photo to answer",
        (
            *("compare", f"{PHOTO_TASK}:model", "--items", f"{FILES}/photos", "--after", f"{PHOTO_TASK}:best"),
            *("--before", f"{PHOTO_TASK}:decode,{PHOTO_TASK}:scale"),
        ),
        value("judged"),
        contestants=("torch",),
        turn_of="steps",
        loop="from_file.py",
        arguments=("photo_task", f"{FILES}/photos"),
        threads=(1,),
        writes="photos",
    ),
    solving("scipy:LSODA", "with_scipy"),
    solving("diffrax", "with_diffrax", "diffrax"),
    simulating("numpy"),
    simulating("torch"),
    simulating("jax"),
    simulating("gymnax", "gymnax"),
    simulating("gymnasium", "gymnasium"),
    simulating("gymnasium:vectorized", "gymnasium"),
    *CASES_OF_USERS,
    untrusted("one_us", math.inf),
    untrusted("fifty_us", 0.03),
    untrusted("five_ms", 0.03),
)
