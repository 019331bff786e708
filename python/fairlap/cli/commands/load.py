"""``fairlap load``: how many requests each contestant serves under a bound on their latency."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from fairlap.cli.help import RACE_SECTIONS, Command
from fairlap.cli.options.output_options import MAX_SLOWDOWN, SANDBOX, options_of_any_race
from fairlap.cli.options.source_options import GENERATE, source_options
from fairlap.cli.options.stream_options import FIRST_TOKEN, TRIAL, USERS, stream_options
from fairlap.cli.options.values import (
    CONTESTANTS,
    DEVICE,
    DURATION,
    LATENCY,
    MODEL_OR_FILE,
    SHARE,
    WHOLE_NUMBERS,
    Choice,
    one_or_more,
)
from fairlap.cli.races.planned_race import PlanOptions, plan_options, race_as_asked
from fairlap.cli.races.stream_race import are_prompts, race_streams, refuse_options_of_streams
from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD, LARGEST_BATCH, MOST_WORKERS, Scenario

if TYPE_CHECKING:
    from fairlap.race.planning.plan import Plan
    from fairlap.request.race_request import RaceRequest

_OF_LOAD = (
    "p50",
    "p90",
    "p99",
    "first_token",
    "workers",
    "largest_batch",
    "longest_wait",
    "trial",
    "scenario",
    "logs",
    "users",
    "think",
)


@click.command(
    "load",
    cls=Command,
    sections=RACE_SECTIONS,
    essential="on p99 p90 first-token tokens rate workers largest-batch batch threads budget scenario output",
    examples="""
fairlap load convnet --on torch,onnxruntime --p99 50ms
    Find the largest rate at which 99 of 100 requests take at most 50 ms.
fairlap load convnet --on torch --p99 50ms --workers 2 --largest-batch 8
    Serve with two threads, and up to eight waiting requests in one call.
fairlap load convnet --on torch --p99 50ms --users 500 --think 20s --price 1.20/h
    Find how many machines serve 500 users, and their price.
fairlap load convnet --on torch,jax --scenario offline
    Run MLPerf's LoadGen.
fairlap load chat.jsonl --on http://127.0.0.1:8000/v1:model=m --tokens 64 --rate 5
    Load a language model on a server that streams its answers.
fairlap load p.jsonl --on serve:transformers:model=./m,transformers:model=./m --tokens 64 --rate 5
    Start a server of a model, and compare it with the model alone.
""",
)
@click.argument("models", nargs=-1, type=MODEL_OR_FILE, metavar="MODEL|FILE...|REQUEST.toml|PLAN.json|PROMPTS.jsonl")
@click.option("--on", "contestants", type=CONTESTANTS, help="Contestants: torch, torch:compile, torch==2.13.0, ...")
@click.option("--p99", type=LATENCY, help="Ninety-nine of a hundred requests are answered within DURATION: 20ms.")
@click.option("--p90", type=LATENCY, help="Nine of ten requests are answered within DURATION.")
@click.option("--p50", type=LATENCY, help="Half of the requests are answered within DURATION.")
@FIRST_TOKEN
@stream_options
@USERS
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    help="Threads that serve requests.  [default: 1]",
)
@click.option(
    "--largest-batch",
    type=click.IntRange(1, LARGEST_BATCH),
    help="Serve up to so many waiting requests in one call.  [default: 1]",
)
@click.option("--longest-wait", type=LATENCY, help="With --largest-batch: wait DURATION for a batch to fill.")
@TRIAL
@click.option(
    "--scenario",
    type=Choice(get_args(Scenario)),
    metavar="NAME",
    help="Run MLPerf's LoadGen: single-stream, multi-stream, offline, server.",
)
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Keep the logs of LoadGen in FOLDER.",
)
@click.option("--batch", type=WHOLE_NUMBERS, help="Items that one request asks about.  [default: 1]")
@click.option(
    "--precision",
    type=one_or_more("fp32", "tf32", "fp16", "bf16", "autocast", "int8", "fp8"),
    metavar="NAME,...",
    help="fp32, fp16, bf16, autocast, int8; GPU: tf32, fp8.  [default: fp32]",
)
@click.option("--device", type=DEVICE, help="cpu, cuda or cuda:N.  [default: cpu]")
@source_options
@GENERATE
@click.option("--threads", type=int, help="Threads of every contestant's framework.  [default: all cores]")
@click.option(
    "--budget",
    type=DURATION,
    help="Race until all is decided, or for DURATION.  [default: 5m to 15m]",
)
@click.option("--blocks", type=int, help="Run a fixed number of blocks: new processes of every contestant.")
@click.option(
    "--only-winner", is_flag=True, default=None, help="Compare only the fastest with the others: decided sooner."
)
@MAX_SLOWDOWN
@click.option(
    "--conditions",
    type=Choice(["controlled", "as-found", "both"]),
    metavar="KIND",
    help="controlled (the default: own cores, fixed memory), as-found, both.",
)
@click.option("--seconds", type=DURATION, help="Time of calls one after the other in each process.  [default: 0.4s]")
@click.option("--seed", type=click.IntRange(min=0), help="Draw orders, arrivals and items from this seed.")
@click.option("--data-seed", type=click.IntRange(min=0), help="Draw weights and inputs from this seed.")
@plan_options
@click.option("--target", type=SHARE, help="Race until every interval is within ±SHARE.")
@SANDBOX
@click.option(
    "--memory-limit",
    "memory_limit_bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Limit the address space of every worker.",
)
@click.option(
    "--best-budget",
    type=DURATION,
    help="Search for settings of torch:best for so long.  [default: 60s]",
)
@options_of_any_race
@click.pass_context
def command(
    context: click.Context,
    /,
    models: tuple[str, ...],
    dry_run: bool,
    save_plan: Path | None,
    plan_file: Path | None,
    resume: str | None,
    store: bool,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Find how many requests each contestant serves under a bound on their latency.

    Give one bound: --p99 20ms. A model that generates may have one on its first token as well, or alone: --first-token
    50ms. Requests arrive at random (Poisson), whether or not those before them are answered, and their latency counts
    from when they were due. In every block each contestant searches, in a new process, for the largest rate that meets
    the bounds; the verdict is about the ratio of these rates. A duration is 20ms, 90s, 10m or 1h; a bare number
    means seconds.

    A race takes up to 15 minutes instead of 5 while too few blocks have run to claim anything.

    Contestants have the same weights, answers to drawn requests are checked, and a contestant that drops requests or
    keeps answers is disqualified.

    With a file of prompts, contestants are servers that stream language models: by their address, or started for the
    race (serve:transformers:model=./m, serve:command="PROGRAM {port}":model=m), and models without a server
    (transformers:model=./m). All get the same requests, at a --rate or of so many users (--concurrency), or the largest
    rate that meets --first-token and --per-token is searched. A trace of Mooncake (.jsonl) or Azure (.csv) is replayed.

    With --scenario single-stream, multi-stream or offline, MLPerf's LoadGen runs instead, and its figure is compared.
    Where it is installed (pip install 'fairlap[load]'), it also judges 90 % of the largest rate, once; with --scenario
    server in every process.

    Exit status: 0 when a contestant has a figure, even if others have none; 1 when none has one (no rate meets the
    bound), a file was lost or the run could not be stored; 2 for an invalid request, 130 after Ctrl-C.
    """
    options = PlanOptions(dry_run, save_plan, plan_file, resume)
    if are_prompts(models):
        race_streams(models, given, context, options, store=store, quiet=quiet, as_json=as_json)
        return
    refuse_options_of_streams(given)
    race_as_asked(models, given, _requested, options, store=store, quiet=quiet, as_json=as_json, require=_require_load)


def _require_load(plan: Plan) -> None:
    if plan.command != "load":
        raise InvalidRequest("the plan is not one of `fairlap load`; run it with `fairlap compare`", code=E_LOAD)


def _requested(models: tuple[str, ...], given: dict[str, Any]) -> RaceRequest:
    import msgspec

    from fairlap.request.fields.load import LoadRequest
    from fairlap.request.race_request import RaceRequest, read_request

    of_load = {name: given.pop(name) for name in _OF_LOAD if name in given}
    if len(models) == 1 and models[0].lower().endswith(".toml"):
        request = read_request(Path(models[0]))
        load = msgspec.structs.replace(request.load or LoadRequest(), **of_load)
        return msgspec.structs.replace(request, load=load, **given)
    if not models or "contestants" not in given:
        raise InvalidRequest("give a model, contestants and a bound: fairlap load mlp --on torch,jax --p99 20ms")
    return RaceRequest(models=models, load=LoadRequest(**of_load), **given)
