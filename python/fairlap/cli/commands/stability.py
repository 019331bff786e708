"""``fairlap stability``: digits, time and repeatability of each contestant in one table."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT, writable
from fairlap.cli.options.values import CONTESTANTS, DEVICE, MODEL_OR_FILE, one_or_more
from fairlap.cli.output import print_document, print_note

if TYPE_CHECKING:
    from fairlap.race.planning.plan import Plan
    from fairlap.request.names import Contestants, Device
    from fairlap.request.work import Precision
    from fairlap.stability.asked_parts import Part
    from fairlap.stability.table import StabilityRow

_USUAL = ("stability/*",)
_USUAL_BATCH, _MOST_THREADS = 8, 2
_MOST_SEED = 2**31


@click.command(
    "stability",
    cls=Command,
    examples="""
fairlap stability --on torch,jax,onnxruntime -o stability.html
    Compare digits, times and repeated answers on all operations of the list.
fairlap stability mlp hard-softmax-r64-n1000-s100 --on torch,jax --precision fp32,bf16
    Compare a network and an operation in two precisions.
""",
)
@click.argument("models", nargs=-1, type=MODEL_OR_FILE, metavar="[MODEL|OPERATION|FILE...]")
@click.option(
    "--on", "contestants", type=CONTESTANTS, required=True, help="Contestants: torch, jax, torch:compile, ..."
)
@click.option(
    "--precision",
    "precisions",
    type=one_or_more("fp32", "fp16", "bf16", "autocast", "tf32"),
    metavar="NAME,...",
    default="fp32",
    show_default=True,
    help="fp32, fp16, bf16, autocast, tf32 (on a GPU).",
)
@click.option("--device", type=DEVICE, default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=_USUAL_BATCH,
    show_default=True,
    help="Items of a built-in model; one is also answered alone.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), help="Draw weights and inputs from this seed.  [default: a new one]"
)
@click.option("--trust", is_flag=True, help="Run the code that models and contestants bring.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@OUTPUT
@JSON
def command(
    models: tuple[str, ...],
    contestants: Contestants,
    precisions: tuple[Precision, ...],
    device: Device,
    batch: int,
    seed: int | None,
    trust: bool,
    quiet: bool,
    output: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Show who keeps digits, at what time, and whose answers repeat bit by bit.

    Answers are compared with the float64 reference, and with those of a second call, a second process, two threads and,
    of models with a batch, one item alone. Without a model the operations of the list `stability` are taken. Exit
    status 1 when a contestant failed.
    """
    from fairlap.machine.race_lock.lock import one_race
    from fairlap.render.encoders import SUFFIXES
    from fairlap.stability.asked_parts import parts_of
    from fairlap.stability.document import document_of
    from fairlap.stability.table import StabilityTable
    from fairlap.stability.trials import failures, stability_rows

    files = writable(output, only=SUFFIXES)
    seed = secrets.randbelow(_MOST_SEED) if seed is None else seed
    threads = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    report: Callable[[str], None] = (lambda _: None) if quiet or as_json else print_note
    parts = parts_of(models or _USUAL, batch, precisions, device, report)
    common = {"contestants": contestants, "threads": threads, "seed": seed, "trust": trust, "device": device}
    plans = [_plan(part, common, report) if part.precisions else None for part in parts]
    rows: list[StabilityRow] = []
    with one_race(notify=report):
        for part, plan in zip(parts, plans, strict=True):
            rows += () if plan is None else stability_rows(plan, report)
            rows += part.rows_without(contestants)
    status = print_document(
        document_of(StabilityTable(tuple(rows), seed, threads, str(device))), as_json=as_json, files=files
    )
    raise SystemExit(status or int(bool(failures(rows))))


def _plan(part: Part, common: dict[str, Any], report: Callable[[str], None]) -> Plan:
    from fairlap.race.planning.plan_from_request import plan_of
    from fairlap.request.race_request import RaceRequest

    return plan_of(
        RaceRequest(
            models=tuple(part.models),
            precision=part.precisions,
            batch=part.batch,
            blocks=1,
            data_seed=common["seed"],
            **common,
        ),
        report,
    )
