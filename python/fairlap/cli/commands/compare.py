"""``fairlap compare``: the same model in several frameworks, each in separate processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from fairlap.cli.help import RACE_SECTIONS, Command
from fairlap.cli.options.added_options import added_options
from fairlap.cli.options.output_options import MAX_SLOWDOWN, SANDBOX, SECONDS, race_options
from fairlap.cli.options.scale_options import scale_options
from fairlap.cli.options.source_options import GENERATE, source_options
from fairlap.cli.options.values import (
    COMMAND,
    CONTESTANTS,
    DEVICES,
    DURATION,
    MODEL_OR_FILE,
    NAMES,
    SHARE,
    WHOLE_NUMBERS,
    Choice,
    one_or_more,
)
from fairlap.cli.races.planned_race import PlanOptions, plan_options, race_as_asked
from fairlap.errors import InvalidRequest
from fairlap.request.race_request import MOST_BATCH
from fairlap.request.work import Mode, Precision

if TYPE_CHECKING:
    from fairlap.request.race_request import RaceRequest


@added_options
@click.command(
    "compare",
    cls=Command,
    sections=RACE_SECTIONS,
    essential="on command batch mode precision threads to-score budget baseline shapes dims inputs output",
    examples="""
fairlap compare convnet --on torch,tensorflow:graph,jax,onnxruntime
    Race four frameworks on a built-in model.
fairlap compare model.onnx --dims batch=8 --on onnxruntime,torch:compile
    Race your own model; `fairlap list routes model.onnx` shows who can run it.
fairlap compare mlp --on torch==2.12.0,torch==2.13.0 --batch 64 -o race.html
    Race two releases, each in its own environment, and write a page.
""",
)
@click.argument("models", nargs=-1, type=MODEL_OR_FILE, metavar="MODEL|FILE...|REQUEST.toml|PLAN.json")
@click.option("--on", "contestants", type=CONTESTANTS, help="Contestants: torch, torch:compile, torch==2.13.0, ...")
@click.option(
    "--command",
    "commands",
    type=COMMAND,
    multiple=True,
    metavar="NAME=COMMAND",
    help="A program: old='./old --size 10', or NAME@FOLDER=... Repeatable.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUES",
    help="Each value in {NAME} of commands: size=1M,2M or level=1..9.",
)
@click.option(
    "--same-output",
    is_flag=True,
    default=None,
    help="Disqualify programs that print something else than the first one.",
)
@click.option(
    "--reported",
    metavar="FORMAT[:NAME]",
    help="Race programs by the time they report: pyperf, hyperfine, number, ...",
)
@click.option("--batch", type=WHOLE_NUMBERS, help="Items in one call.  [default: the model's]")
@click.option(
    "--mode",
    type=one_or_more(*get_args(Mode)),
    metavar="MODE,...",
    help="infer, grad, train, solve, simulate, ppo, dqn, jvp, hessian, ...",
)
@click.option("--loss", metavar="NAME", help="Of your own model: cross_entropy, mse or module:function.")
@click.option("--optimizer", metavar="NAME:lr=...", help="sgd:lr=0.01,momentum=0.9 or adamw:lr=0.001.")
@click.option(
    "--schedule", metavar="NAME:steps=N", help="Of its learning rate: cosine:steps=1000,warmup=100 or linear."
)
@click.option(
    "--start-from",
    metavar="FILE",
    help="Start from these weights; FILE@sha256:HEX checks the file.",
)
@click.option(
    "--to-score",
    type=SHARE,
    metavar="SHARE",
    help="Train until this share of held-out items is right, or this R squared.",
)
@click.option(
    "--train-on",
    metavar="DATA",
    help="Learn FILE.csv:COLUMN, .parquet, .npz, images or a built-in set.",
)
@click.option("--fraction", type=SHARE, metavar="SHARE", help="With --to-score: learn from this share of the items.")
@click.option("--epochs", type=click.IntRange(min=1), help="With --to-score: at most so many epochs.  [default: 50]")
@click.option(
    "--count-evaluation",
    is_flag=True,
    default=None,
    help="Let answering the held-out items after each epoch count too.",
)
@click.option(
    "--precision",
    type=one_or_more(*get_args(Precision)),
    metavar="NAME,...",
    help=f"{', '.join(get_args(Precision))}.  [default: fp32]",
)
@click.option("--across-precisions", is_flag=True, default=None, help="Rank contestants of all precisions together.")
@click.option(
    "--max-drop",
    type=SHARE,
    metavar="SHARE",
    help="Rank only those whose error grew by at most this against fp32.",
)
@click.option("--device", type=DEVICES, help="cpu, cuda or cuda:N; cuda:0,cuda:1 for ranks.  [default: cpu]")
@click.option("--data", metavar="synthetic|PATH", help="Feed the calls from drawn data, a .npy file or a folder.")
@source_options
@GENERATE
@click.option(
    "--shapes-from",
    metavar="SIZES",
    help="Race over sizes of calls: FILE.csv, or drawn as seq=uniform:8..64.",
)
@click.option("--items", metavar="FOLDER", help="Time all from file to answer: a folder with a file for each.")
@click.option(
    "--before",
    type=NAMES,
    metavar="MODULE:NAME,...",
    help="Functions from the path of a file to the inputs of your model.",
)
@click.option(
    "--after",
    type=NAMES,
    metavar="MODULE:NAME,...",
    help="Functions from its outputs to the answer.",
)
@click.option(
    "--reference",
    metavar="MODULE:NAME",
    help="Check callables by it; --inputs MODULE:NAME draws their arguments.",
)
@click.option(
    "--metric",
    type=NAMES,
    metavar="NAME,...",
    help="Score the answers: top1, f1, roc_auc, perplexity, mse, wer, map, ...",
)
@click.option("--labels", metavar="FILE", help="Right answers: .npy, FILE.csv:COLUMN for --metric; for map, .json.")
@click.option("--groups", metavar="FILE", help="Scores by group of items: FILE.csv:COLUMN, or .npy.")
@click.option(
    "--corrupt",
    type=NAMES,
    metavar="NAME[:1-5],...",
    help="Scores on corrupted inputs too: fog:3, noise, all; typos.",
)
@click.option(
    "--threads", type=WHOLE_NUMBERS, help="Threads of every contestant; 1,2 races both.  [default: all cores]"
)
@scale_options
@click.option(
    "--budget",
    type=DURATION,
    help="Race until all is decided, or for DURATION.  [default: 60s to 150s]",
)
@click.option(
    "--only-winner", is_flag=True, default=None, help="Compare only the fastest with the others: decided sooner."
)
@MAX_SLOWDOWN
@click.option("--blocks", type=int, help="Run a fixed number of blocks: new processes of every contestant.")
@click.option("--target", type=SHARE, help="Race until every interval is within ±SHARE.")
@click.option(
    "--fresh",
    type=Choice(["every", "first", "never"]),
    metavar="BLOCKS",
    help="Give works own processes in blocks: every (default), first, never.",
)
@click.option(
    "--conditions",
    type=Choice(["controlled", "as-found", "both"]),
    metavar="KIND",
    help="controlled (the default: own cores, fixed memory), as-found, both.",
)
@SECONDS
@click.option("--cache", type=Choice(("warm", "cold")), help="The GPU's L2 cache before each call.")
@click.option(
    "--regime",
    type=Choice(("burst", "sustained")),
    help="Rest the GPU before measuring, or load it until its clock is steady.",
)
@click.option("--lock-clocks", metavar="base|MHZ", help="Lock the GPU's clock during the race, which needs root.")
@click.option("--seed", type=click.IntRange(min=0), help="Draw orders and settings from this seed.  [default: random]")
@click.option(
    "--data-seed",
    type=click.IntRange(min=0),
    help="Draw weights and inputs from this seed.  [default: 0, 1, 2 in turn]",
)
@plan_options
@SANDBOX
@click.option(
    "--memory-limit",
    "memory_limit_bytes",
    metavar="BYTES",
    type=int,  # how much a worker needs at least is said where the plan is drawn
    help="Limit the address space of every worker.",
)
@click.option(
    "--count-allocations",
    is_flag=True,
    default=None,
    help="Count how often a call allocates memory, and how much.",
)
@click.option(
    "--min-memory",
    is_flag=True,
    default=None,
    help="Search for the smallest memory in which each contestant runs.",
)
@click.option(
    "--profile",
    is_flag=True,
    default=None,
    help="Show the operators or kernels that take the time.",
)
@click.option(
    "--max-batch",
    is_flag=False,
    flag_value=MOST_BATCH,
    type=click.IntRange(1, MOST_BATCH),
    metavar="[LIMIT]",
    help="Search for the largest batch that fits into memory, up to LIMIT.",
)
@click.option("--max-batch-budget", type=DURATION, help="Stop each of these searches after DURATION.  [default: 2m]")
@click.option(
    "--best-budget",
    type=DURATION,
    help="Search for settings of torch:best for so long.  [default: 60s]",
)
@click.option(
    "--recompile",
    type=NAMES,
    metavar="SIZE,...",
    help="Report what compiling did, and what other sizes or types cost.",
)
@race_options
def command(
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
    """Compare frameworks on one or more models.

    A model is built-in (`fairlap list models`), operations by their name or a pattern such as 'conv-*' (`fairlap list
    operations`), or your own: model.onnx, and what `fairlap list routes` explains.
    Bind its shapes with --shapes or --dims, and give it your --inputs.

    Programs race too, without a model: --command old=./old --command new=./new. Programs that time themselves race by
    their own figures with --reported pyperf, google-benchmark, hyperfine, criterion or number, printed or written to
    the file {report}; pyperf:NAME picks a benchmark.

    Contestants have the same weights and inputs, and their outputs are checked. Every block runs them in new processes,
    which take short turns, in random order; with --fresh first one does several models or sizes in turn. The race
    ends when every comparison is decided, or when the budget is spent; without a budget it takes up to 150 s while
    too few blocks have run to claim anything. (`fairlap.compare` in Python compares callables in one process instead:
    quicker, but blind to differences between processes.)

    Several values of --batch, --mode, --precision, --threads and --processes are raced in every combination. A request
    file in TOML holds all options; those on the command line win. A duration is 20ms, 90s, 10m or 1h; a bare number
    means seconds.

    A change, `--require 'memory_peak<=+2%'`, is judged as by `fairlap gate` against --baseline or the first contestant,
    and so is the time, by --max-slowdown (2%). The race goes on until both are decided.

    Exit status: 0 when a contestant finished, even if others failed; 1 when none did or none reached the score, a file
    or data was lost or the run could not be stored; 2 for an invalid request, 130 after Ctrl-C. With such a change, as
    of `fairlap gate`: 1 when a bound is shown to be exceeded, 3 when not comparable.
    """
    options = PlanOptions(dry_run, save_plan, plan_file, resume)
    race_as_asked(models, given, _requested, options, store=store, quiet=quiet, as_json=as_json)


def _require_models(models: tuple[str, ...]) -> None:
    """Refuse an unknown one, with the nearest name, before contestants are asked for."""
    from fairlap.race.operations import selected_models
    from fairlap.race.planning.sources_from_request import require_model
    from fairlap.request.race_request import RaceRequest

    selected, _ = selected_models(models, lambda _: None)
    for model in selected:
        require_model(RaceRequest(models=selected), model)


def _requested(models: tuple[str, ...], given: dict[str, Any]) -> RaceRequest:
    import msgspec

    from fairlap.cli.options.command_parameters import with_parameters
    from fairlap.models.names import workload_names
    from fairlap.request.commands import commands_in
    from fairlap.request.race_request import RaceRequest, read_request

    commands = commands_in(with_parameters(given.pop("commands", ()), given.pop("parameters", ())))
    given |= {"commands": commands} if commands else {}
    if not any(model.lower().endswith(".toml") for model in models):
        if not models and not commands:
            raise InvalidRequest("give a model and contestants: fairlap compare mlp --on torch,jax")
        if "contestants" not in given and not commands:
            _require_models(models)
            listing = "models" if models[0] in workload_names() else f"routes {models[0]}"
            raise InvalidRequest(
                f"name the contestants with --on, such as --on torch,jax; `fairlap list {listing}` shows "
                "which can run it"
            )
        return RaceRequest(models=models, **given)
    if len(models) > 1:
        raise InvalidRequest("a request file names its own models; give it alone")
    request = read_request(Path(models[0]))
    settings = {**request.scenario_settings, **given.pop("scenario_settings", {})}
    return msgspec.structs.replace(request, **given, scenario_settings=settings)
