"""Cases of models that a user brings: functions, files, several files, sizes that change, and a choice of models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

from .by_hand.sizes import BATCH, LENGTHS
from .case import FILES, FRAMEWORKS, STEPS, TRAINING, Case, LoopTurns, Row, all_of, value

ASKED = {
    "infer": (),
    "grad": ("--mode", "grad", "--loss", "cross_entropy"),
    "train": ("--mode", "train", "--loss", "cross_entropy", *STEPS),
}
LOOPS = {"infer": "latency", "grad": "grad", "train": "train"}  # of the network that is in the file
NETWORK = f"{FILES}/convolutions.onnx"
Figures = tuple[str, Callable[[Row], float], Callable[[LoopTurns, Row], float]]
"""The name of a case, its figure in a row, and that of its loop."""


def of_function(name: str, module: str, function: str, contestant: str, needs: str = "") -> list[Case]:
    """Time the calls, the gradients and the steps of training of a model that a user has written."""
    source = f"tests.trust.agreement.by_hand.{module}:{function}"
    return [
        Case(
            f"{mode} of {name}",
            ("compare", source, *options),
            value("latency_p50_ns"),
            0.03,
            contestants=(contestant,),
            scenario=f"{function}_{mode}",
            threads=(1,),
            needs=needs,
        )
        for mode, options in ASKED.items()
    ]


def of_onnx_file() -> list[Case]:
    return [
        Case(
            f"{mode} of an ONNX file",
            ("compare", NETWORK, *options),
            value("latency_p50_ns"),
            0.03,
            contestants=FRAMEWORKS if mode == "infer" else TRAINING,
            scenario=LOOPS[mode],
            model_file="convolutions.onnx",
            threads=(1,),
            writes="convolutions",
        )
        for mode, options in ASKED.items()
    ]


def of_several_files() -> list[Case]:
    """Race the exports of one network in the runtime of each."""
    return [
        Case(
            f"several files of one model: {suffix}",
            ("compare", f"{NETWORK},{FILES}/convolutions.tflite"),
            value("latency_p50_ns"),
            0.03,
            contestants=(f"{framework}:file=convolutions.{suffix}",),
            scenario="latency",
            model_file=f"convolutions.{suffix}",
            threads=(1,),
            writes="exports",
        )
        for framework, suffix in (("onnxruntime", "onnx"), ("litert", "tflite"))
    ]


def medians_by_length(turns: LoopTurns) -> dict[int, float]:
    """Of answers that name the size and the time of each call in turn."""
    flat, times = all_of(turns), defaultdict[int, list[float]](list)
    for length, time_ns in zip(flat[::2], flat[1::2], strict=True):
        times[int(length)].append(time_ns)
    return {length: median(own) for length, own in times.items()}


def mean_over_mix(turns: LoopTurns, row: Row) -> float:
    found = medians_by_length(turns)
    return sum(calls * found[length] for length, calls in LENGTHS.items()) / sum(LENGTHS.values())


def at_length(length: int) -> Callable[[LoopTurns, Row], float]:
    return lambda turns, row: medians_by_length(turns)[length]


def time_at(length: int) -> Callable[[Row], float]:
    def found(row: Row) -> float:
        [at] = [each for each in row["mix_by_size"] if each["size"] == str(length)]
        return float(at["call_ns"]["value"])

    return found


def of_changing_sizes() -> list[Case]:
    of_mix: Figures = "sizes that change", value("judged"), mean_over_mix
    figures = [of_mix, *((f"{of_mix[0]}: {length}", time_at(length), at_length(length)) for length in LENGTHS)]
    return [
        Case(
            name,
            ("compare", f"{FILES}/sequences.onnx", "--shapes-from", f"{FILES}/lengths.csv"),
            figure,
            contestants=("onnxruntime", "jax"),
            turn_of="steps",
            by_hand_figure=by_hand,
            scenario="mix",
            model_file="sequences.onnx",
            threads=(1,),
            writes="sequences",
        )
        for name, figure, by_hand in figures
    ]


def candidate(model: str, figure: Callable[[Row], float]) -> Callable[[Row], float]:
    return lambda row: figure(row[model])


def time_of_batch(row: Row) -> float:
    return BATCH * float(row["time_per_item_ns"]["value"])


def of_choice() -> list[Case]:
    """Choose between two networks on the same items; PyTorch races too, so that contestants take turns."""
    models: Sequence[str] = ("small", "large")
    command = (
        *("choose", *(f"{FILES}/{model}.onnx" for model in models), "--on", "onnxruntime,torch"),
        *("--batch", str(BATCH), "--inputs", f"{FILES}/items.npy"),
        *("--labels", f"{FILES}/classes.npy", "--metric", "top1"),
    )
    times = [
        Case(
            f"time of a candidate: {model}",
            command,
            candidate(model, time_of_batch),
            contestants=("onnxruntime",),
            scenario="latency",
            model_file=f"{model}.onnx",
            threads=(1,),
            writes="candidates",
            of_model=model,
        )
        for model in models
    ]
    scores = [
        Case(
            f"score of a candidate: {model}",
            command,
            candidate(model, lambda row: float(row["score"]["value"])),
            allowed=0.0,
            contestants=("onnxruntime",),
            turn_of=None,
            scenario="score",
            model_file=f"{model}.onnx",
            threads=(1,),
            writes="candidates",
            of_model=model,
        )
        for model in models
    ]
    return [*times, *scores]


CASES_OF_USERS = (
    *of_function("a user's convolutions", "users_torch", "convolutions", "torch"),
    *of_function("a user's transformer", "users_torch", "transformer", "torch"),
    *of_function("a Keras model", "users_keras", "network", "tensorflow:graph"),
    *of_function("a JAX function", "users_jax", "residual_network", "jax"),
    *of_function("a flax model", "users_flax", "network", "jax", needs="flax"),
    *of_onnx_file(),
    *of_several_files(),
    *of_changing_sizes(),
    *of_choice(),
)
