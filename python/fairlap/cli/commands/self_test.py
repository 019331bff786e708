"""``fairlap self-test``: the false-positive rate, or the power, of verdicts on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.help import RACE_SECTIONS, Command
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON, WAIT
from fairlap.cli.options.stream_options import FIRST_TOKEN, TRIAL, stream_options
from fairlap.cli.options.values import CONTESTANT, DEVICE, DURATION, MODEL_OR_FILE, SHARE, Choice

if TYPE_CHECKING:
    from fairlap.request.names import ContestantName


@click.command(
    "self-test",
    cls=Command,
    sections=RACE_SECTIONS,
    essential="on runs budget slowdown threads to-score tokens output",
    examples="""
fairlap self-test convnet --on onnxruntime --runs 20
    Count false positives in twenty races of equals.
fairlap self-test convnet --on torch --slowdown 2%
    Count how often a true difference of 2 % is found.
fairlap self-test prompts.jsonl --on http://127.0.0.1:8000/v1:model=m --tokens 16 --concurrency 2
    Load a server of language models under two names.
""",
)
@click.argument("model", type=MODEL_OR_FILE, metavar="MODEL|PROMPTS.jsonl")
@click.option("--on", "contestant", required=True, type=CONTESTANT, help="Contestant to race against itself.")
@click.option("--runs", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Runs.")
@click.option("--budget", type=DURATION, help="Each run: until decided, or for DURATION.  [default: 60s to 150s]")
@click.option("--blocks", type=click.IntRange(6, 1_000), help="Run a fixed number of blocks instead.")
@click.option("--slowdown", type=SHARE, help="Slow one of them down by SHARE, and count how often it is found.")
@click.option("--to-score", type=SHARE, help="Train until SHARE of held-out items is right; compare the times.")
@FIRST_TOKEN
@stream_options
@TRIAL
@click.option("--batch", type=int, help="Items in one call.  [default: the model's]")
@click.option("--device", type=DEVICE, default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--threads", type=int, help="Threads of the contestant.  [default: all cores]")
@click.option(
    "--conditions",
    type=Choice(["controlled", "as-found"]),
    metavar="KIND",
    default="controlled",
    show_default=True,
    help="controlled (own cores, fixed memory), as-found.",
)
@click.option("--seconds", type=DURATION, default="0.4s", show_default=True, help="Time measured in each process.")
@click.option("--seed", type=int, help="Draw orders and settings from this seed.  [default: random, printed]")
@WAIT
@OUTPUT_JSON
@JSON
def command(model: str, contestant: ContestantName, **options: Any) -> None:
    """Measure the false-positive rate on this machine: race a contestant against itself and count the differences.

    With --to-score it trains, and the time to the score is compared. With a file of prompts, the contestant is a server
    of language models, which is loaded under two names.

    Every difference found is false, and at most 5 % are promised.

    Exit status: 1 when more were found than the promise allows, 130 after Ctrl-C.
    """
    from fairlap.cli.races.self_test_trials import run_self_test
    from fairlap.cli.races.stream_race import streamed_in_self_test

    streamed = streamed_in_self_test(model, contestant, options)
    raise SystemExit(run_self_test(model, contestant, streamed=streamed, **options))
