"""A real race through the command line: the same models in each installed framework, outputs checked, and an A/A."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from ..machine import CACHE, ROOT
from ..record import WITHOUT, Deadline, NotHere, PartRecord, Step

DEVICE = "cuda:0"
NEIGHBOUR = "tests.gpu.proof.parts.neighbour"
CONTESTANTS = ("torch", "torch:compile", "jax", "tensorflow:graph", "onnxruntime")
BLOCKS, MEASURED_S = 4, 0.4
LONGEST_S, NEEDS_S, REST_S = 120.0, 110.0, 12.0
AA_BLOCKS, AA_NEEDS_S = 6, 75.0
TRAINED, TRAINED_BATCH, TRAINING_NEEDS_S = "mlp", 64, 70.0
AGREES_WITHIN = 0.25
COMPILED, EAGER = "torch:compile", "torch"
RACED = "finished"  # the outcome of a contestant that was timed and answered right
ON_DEVICE = ("device_span_ns", "context_span_ns", "kernel_sum_ns")
PUBLISHED_COMPILED = (
    1.87  # ResNet-50, mixed precision, RTX 4090, from timm's tables: another board, for orientation only
)


@dataclass(frozen=True)
class RaceWork:
    model: str
    batch: int
    precision: str

    @property
    def name(self) -> str:
        return f"{self.model}-b{self.batch}-{self.precision}"


# What is checked first costs least: the float64 reference of a large batch takes minutes of 16 cores.
RACES = tuple(
    RaceWork(model, batch, precision)
    for batch, precision in ((1, "fp32"), (1, "bf16"), (64, "bf16"), (64, "fp32"))
    for model in ("resnet50", "bert_base", "gpt2_prefill")
)
PUBLISHED = RaceWork("resnet50", 64, "bf16")


def run(record: PartRecord, deadline: Deadline) -> None:
    steps = [Step(f"contestant {name}", 0, partial(_is_here, name)) for name in CONTESTANTS]
    steps += [Step(RACES[0].name, NEEDS_S, partial(_raced, record, deadline, RACES[0]))]
    steps += [
        Step("A/A", AA_NEEDS_S, partial(_against_itself, record, deadline)),
        Step("A/A beside a busy neighbour", AA_NEEDS_S, partial(_beside_a_neighbour, record, deadline)),
        Step("training", TRAINING_NEEDS_S, partial(_trained, record, deadline)),
    ]
    steps += [Step(work.name, NEEDS_S, partial(_raced, record, deadline, work)) for work in RACES[1:]]
    steps += [Step("precisions", 0, partial(_precisions, record)), Step("ratios", 0, partial(_ratios, record))]
    record.take(steps, deadline)


def _needed() -> None:
    for module in ("msgspec", "click", "pynvml", "rich", "scipy", "ruptures"):
        if find_spec(module) is None:
            raise NotHere(f"a race needs {module}, which is not installed; `make gpu-proof-kit` fetches it", module)


def _is_here(contestant: str) -> None:
    package = contestant.partition(":")[0]
    if find_spec(package) is None:
        raise NotHere(f"{package} is not installed, so {contestant} does not race", package)


def file_for(name: str) -> Path:
    """Return the path of a result file, without the file of an earlier race."""
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / name).unlink(missing_ok=True)
    return CACHE / name


def _here(record: PartRecord) -> list[str]:
    """Return the installed contestants, without those to do without, or that an earlier race showed to have no CUDA."""
    refused = [row for row in record.rows("races") if row["outcome"] == "unsupported"]
    cannot = {row["contestant"] for row in refused if "cuda" in row["note"].lower()}
    without = os.environ.get(WITHOUT, "").split(",")
    packages = {name: name.partition(":")[0] for name in CONTESTANTS if name not in cannot}
    return [name for name, package in packages.items() if find_spec(package) is not None and package not in without]


def _raced(record: PartRecord, deadline: Deadline, work: RaceWork) -> None:
    _needed()
    file = file_for(f"race-{work.name}.json")
    budget_s = min(LONGEST_S, deadline.left_s() - REST_S)
    command = [sys.executable, "-m", "fairlap", "compare", work.model, "--on", ",".join(_here(record))]
    command += ["--device", DEVICE, "--batch", str(work.batch), "--precision", work.precision]
    command += ["--blocks", str(BLOCKS), "--seconds", str(MEASURED_S), "--conditions", "as-found"]
    command += ["--data-seed", "0"]  # each seed costs a float64 reference, minutes of CPU for a large batch
    output = run_fairlap([*command, "--budget", f"{budget_s:.0f}s", "-o", str(file)], deadline)
    if not file.exists():
        raise RuntimeError(f"the race left no file: {output}")
    keep_race(record, work, file)


def keep_race(record: PartRecord, work: RaceWork, file: Path) -> None:
    """Record what the page shows; the rest stays in the file of the race.

    The headline is wall time until the device is done; what it was busy for comes next to it, or why that is not known.
    """
    import msgspec
    from fairlap.store.runs.run_file import RunDocument

    document = msgspec.json.decode(file.read_bytes(), type=RunDocument)
    for row in document.rows:
        record.row(
            "races",
            race=work.name,
            contestant=row.contestant,
            median_ns=None if row.latency_p50_ns is None else row.latency_p50_ns.value,
            outcome=row.outcome,
            worst_error=row.error_relative,
            bound=row.bound,
            roof=row.roof,
            roof_share=row.roof_share,
            **{name: None if (time := getattr(row, name)) is None else time.value for name in ON_DEVICE},
            note=row.message or "; ".join(f"{name}: {row.absent[name]}" for name in ON_DEVICE if name in row.absent),
        )
    for each in (comparison for found in document.work_results for comparison in found.comparisons):
        record.row("verdicts", race=work.name, blocks=each.blocks, ratio=each.ratio, sentence=each.sentence)
    wrong = [row.contestant for row in document.rows if row.outcome == "disqualified"]
    ran = [row for row in document.rows if row.outcome == RACED]
    if not ran and not wrong:
        troubles = "; ".join(f"{row.contestant}: {row.message or 'no samples'}" for row in document.rows)
        raise RuntimeError(f"nothing was raced: {troubles or 'there is no row'}"[:300])
    record.goal(
        f"{work.name}: contestants with a wrong answer",
        "0",
        len(wrong),
        "",
        reached=not wrong,
        why=", ".join(wrong) if wrong else f"{len(ran)} finished",
    )


def _beside_a_neighbour(record: PartRecord, deadline: Deadline) -> None:
    """While another process multiplies matrices on the device, in turns with those that race."""
    with subprocess.Popen([sys.executable, "-m", NEIGHBOUR], cwd=ROOT, stdout=subprocess.PIPE, text=True) as neighbour:
        try:
            assert neighbour.stdout is not None
            if neighbour.stdout.readline().strip() != "busy":
                raise RuntimeError("the neighbour did not start")
            _against_itself(record, deadline, " beside a busy neighbour")
        finally:
            neighbour.kill()


def _trained(record: PartRecord, deadline: Deadline) -> None:
    _needed()
    file = file_for("race-training.json")
    command = [sys.executable, "-m", "fairlap", "compare", TRAINED, "--mode", "train", "--on", ",".join(_here(record))]
    command += [
        "--device",
        DEVICE,
        "--batch",
        str(TRAINED_BATCH),
        "--blocks",
        "2",
        "--seconds",
        "0.2",
        "--conditions",
        "as-found",
    ]
    output = run_fairlap([*command, "--data-seed", "0", "-o", str(file)], deadline)
    if not file.exists():
        raise RuntimeError(f"the race left no file: {output}")
    keep_race(record, RaceWork(f"{TRAINED}-train", TRAINED_BATCH, "fp32"), file)


def _against_itself(record: PartRecord, deadline: Deadline, where: str = "") -> None:
    _needed()
    file = file_for("race-aa.json")
    command = [sys.executable, "-m", "fairlap", "self-test", "layernorm", "--on", EAGER, "--device", DEVICE]
    command += ["--runs", "1", "--blocks", str(AA_BLOCKS), "--seconds", "0.3", "--conditions", "as-found"]
    output = run_fairlap([*command, "-o", str(file)], deadline)
    if not file.exists():
        raise RuntimeError(f"the self-test left no file: {output}")
    verdicts = json.loads(file.read_bytes())["verdicts"]
    if not verdicts:
        raise RuntimeError("the self-test reached no verdict")
    claimed = sum(each["verdict"] in ("faster", "slower") for each in verdicts)
    for each in verdicts:
        figures = {name: each[name] for name in ("verdict", "ratio", "interval", "blocks")}
        record.row("A/A", **figures, where=where.strip())
    record.goal(f"A/A of {EAGER}{where}: differences claimed", "0 of 1", claimed, "", reached=claimed == 0)


def _precisions(record: PartRecord) -> None:
    """List the precisions, since some frameworks use the name fp32 for TF32."""
    from fairlap.frameworks.registry import framework_named

    for name in _here(record):
        record.row("precisions", contestant=name, offered=", ".join(framework_named(name.partition(":")[0]).precisions))
    record.note("fp32 is IEEE float32 in every contestant; no adapter offers TF32 as a separate precision")


def _ratios(record: PartRecord) -> None:
    raced = [row for row in record.rows("races") if row["outcome"] == RACED]
    medians = {(row["race"], row["contestant"]): row["median_ns"] for row in raced}
    for race in dict.fromkeys(race for race, _ in medians):
        eager = medians.get((race, EAGER))
        for (of, contestant), ns in medians.items():
            if of == race and eager and ns and contestant != EAGER:
                record.row("times faster than PyTorch eager", race=race, contestant=contestant, ratio=eager / ns)
    pair = [medians.get((PUBLISHED.name, name)) for name in (EAGER, COMPILED)]
    ratio = pair[0] / pair[1] if pair[0] and pair[1] else None
    record.goal(
        f"{PUBLISHED.name}: torch:compile over torch (published: {PUBLISHED_COMPILED})",
        f"+- {AGREES_WITHIN:.0%}",
        ratio,
        "",
        reached=None if ratio is None else abs(ratio / PUBLISHED_COMPILED - 1) <= AGREES_WITHIN,
        why="published for another board and its mixed precision; explain a difference"
        if ratio is not None
        else "one of the two did not finish",
    )


def run_fairlap(command: list[str], deadline: Deadline, variables: Mapping[str, str] | None = None) -> str:
    """Run a race; interrupted before the deadline, it keeps what is finished."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=max(5.0, min(LONGEST_S + 3 * REST_S, deadline.left_s() - REST_S / 2)))
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            output, _ = process.communicate(timeout=REST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
    print(output, flush=True)
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no output"
