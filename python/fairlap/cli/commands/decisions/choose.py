"""``fairlap choose``: which of several models to take for a task, by score, time and what else matters."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, get_args

import click

from fairlap import quantity_text
from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT, PRICE_OPTION, SECONDS, WAIT
from fairlap.cli.options.source_options import source_options
from fairlap.cli.options.values import (
    CONTESTANTS,
    DEVICE,
    DURATION,
    MODEL_OR_FILE,
    NAME,
    NAMES,
    SHARE,
    WHOLE_NUMBERS,
    Choice,
)
from fairlap.cli.output import print_document, print_note
from fairlap.cli.races.deciding import decided
from fairlap.request.work import Objective

_SECTIONS = {
    "What to race": "on batch metric labels inputs device",
    "Your models": "shapes dims range trust",
    "What to choose": "require max-drop minimise price score-margin",
    "How long": "blocks budget seconds threads seed wait",
    "Output": "output json q quiet",
    "Help": "h help",
}


@click.command(
    "choose",
    cls=Command,
    sections=_SECTIONS,
    essential="on batch metric labels inputs require max-drop minimise price blocks output",
    examples="""
fairlap choose small.onnx large.onnx --inputs x.npy --labels y.npy --metric top1 --on onnxruntime --batch 8
    Race two models on the same labelled data, and show which are worth their time.
fairlap choose a.onnx b.onnx --inputs x.npy --labels y.npy --metric f1 --on torch --require 'f1>=0.9' --minimise time
    Recommend the fastest whose whole interval of F1 is at least 0.9.
""",
)
@click.argument("models", nargs=-1, required=True, type=MODEL_OR_FILE, metavar="MODEL|FILE...")
@click.option("--on", "contestants", type=CONTESTANTS, required=True, help="Frameworks to race each model in.")
@click.option("--batch", type=WHOLE_NUMBERS, help="Items in one call.  [default: the model's]")
@source_options
@click.option("--metric", type=NAMES, metavar="METRIC", help="One score of the answers: top1, f1, mse; top1:OUTPUT.")
@click.option("--labels", metavar="FILE", help="Right answers: .npy, one for each item of --inputs; for map, .json.")
@click.option(
    "--require", type=NAME, metavar="FIGURE<LIMIT,...", help="Who qualifies: top1>=90%, memory<1GB, cost<0.02."
)
@click.option("--max-drop", type=SHARE, help="Largest drop of the score from that of the first candidate.")
@click.option(
    "--minimise",
    type=Choice(get_args(Objective)),
    metavar="FIGURE",
    help="Recommend the least time, cost, energy, memory or size of files.",
)
@PRICE_OPTION
@click.option("--score-margin", type=SHARE, default="1%", help="Score differences that are equivalent.  [default: 1%]")
@click.option("--device", type=DEVICE, help="cpu, cuda or cuda:N.  [default: cpu]")
@click.option("--blocks", type=click.IntRange(min=1), help="Rounds, in each of which all models race.  [default: 12]")
@click.option("--budget", type=DURATION, help="Begin no round that would end after DURATION.")
@SECONDS
@click.option("--threads", type=click.IntRange(min=1), help="Threads of each candidate.  [default: all cores]")
@click.option("--seed", type=click.IntRange(min=0), help="Draw orders and settings from this seed.  [default: random]")
@WAIT
@OUTPUT
@JSON
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def command(
    models: tuple[str, ...], minimise: str | None, score_margin: float, max_drop: float | None,
    output: tuple[Path, ...], as_json: bool, quiet: bool, **given: Any,
) -> None:  # fmt: skip
    """Choose between models for one task: race them on the same labelled data.

    Each model in each framework that can run it is a candidate. Scores are compared item by item, times within rounds
    in which all models race, and each kind of verdict has one 5 % error rate. Nothing is stored.

    Exit status: 0 a recommendation, 1 no candidate qualifies, 3 undecided, 2 an error, 130 after Ctrl-C, which keeps
    what was measured.
    """
    from fairlap.choice.choose import choose_by_request, question_of
    from fairlap.cli.options.output_options import writable
    from fairlap.render.choice.document import document_of
    from fairlap.render.encoders import SUFFIXES
    from fairlap.request.race_request import RaceRequest

    files = writable(output, only=SUFFIXES)
    asked = {name: value for name, value in given.items() if value not in (None, ())}
    request = RaceRequest(models=models, **asked)
    question = question_of(request, minimise or "", score_margin, max_drop)
    found = decided(partial(choose_by_request, request, question), quiet=quiet)
    status = print_document(document_of(found), as_json=as_json, files=files)
    if found.interrupted:
        rounds = quantity_text.count(found.blocks, "complete round")
        print_note(f"interrupted after {rounds}; run the same command again, which begins with the first round")
    raise SystemExit(found.exit_status or status)
