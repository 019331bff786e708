"""``fairlap compare``: the same model in several frameworks, each in separate processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from fairlap.cli.output import progress_notes
from fairlap.cli.output_options import race_options
from fairlap.cli.source_options import source_options
from fairlap.cli.values import CONTESTANTS, DEVICE, DURATION, FILE, NAMES, SHARE, WHOLE_NUMBERS, one_or_more
from fairlap.errors import InvalidRequest
from fairlap.request.race_request import MOST_BATCH
from fairlap.request.work import Precision

if TYPE_CHECKING:
    from fairlap.cli.run_race import StoredRun
    from fairlap.race.plan import Plan
    from fairlap.request.race_request import RaceOptions, RaceRequest

_SAME = ("cpu model", "cores", "architecture")  # of a machine that a run may be resumed on


@click.command("compare")
@click.argument("models", nargs=-1, metavar="MODEL|FILE...|REQUEST.toml")
@click.option("--on", "contestants", type=CONTESTANTS, help="Contestants: torch, torch:compile, torch==2.13.0, ...")
@click.option("--batch", type=WHOLE_NUMBERS, help="Items in one call.  [default: the model's]")
@click.option("--mode", type=one_or_more("infer", "grad", "train"), help="Modes.  [default: infer]")
@click.option("--optimizer", metavar="NAME:lr=...", help="In mode train: sgd:lr=0.01,momentum=0.9 or adamw:lr=0.001.")
@click.option(
    "--schedule", metavar="NAME:steps=...", help="Of its learning rate: cosine:steps=1000,warmup=100 or linear."
)
@click.option(
    "--start-from",
    metavar="FILE",
    help="In mode train: start from these weights; FILE@sha256:HEX checks the file.",
)
@click.option(
    "--to-score",
    type=SHARE,
    metavar="SHARE",
    help="In mode train: train until this score on held-out items: right answers, or R squared.",
)
@click.option(
    "--train-on",
    metavar="DATA",
    help="With --to-score: a set of `fairlap list data`, FILE.csv:COLUMN, a .parquet or .npz file, or a folder of "
    "images.  [default: the model's]",
)
@click.option("--fraction", type=SHARE, metavar="SHARE", help="With --to-score: learn from this share of the items.")
@click.option("--epochs", type=click.IntRange(min=1), help="With --to-score: at most so many epochs.  [default: 50]")
@click.option(
    "--count-evaluation",
    is_flag=True,
    default=None,
    help="With --to-score: contestants answer the held-out items after each epoch, and that time counts too.",
)
@click.option("--precision", type=one_or_more(*get_args(Precision)), help="Precisions.  [default: fp32]")
@click.option(
    "--across-precisions", is_flag=True, default=None, help="Rank contestants of all the precisions together."
)
@click.option(
    "--max-drop",
    type=SHARE,
    metavar="SHARE",
    help="Rank only contestants whose error grew by at most this against fp32.",
)
@click.option("--device", type=DEVICE, help="cpu, cuda or cuda:N.  [default: cpu]")
@click.option("--data", metavar="synthetic|PATH", help="Feed the calls from drawn data, a .npy file or a folder.")
@source_options
@click.option(
    "--metric",
    type=NAMES,
    metavar="NAME,...",
    help="Score the answers to all --inputs, or what was learnt with --to-score: top1, top5, precision, recall, f1, "
    "roc_auc, perplexity, mse, mae, r2, bleu, wer, map; NAME:OUTPUT for another output.",
)
@click.option(
    "--labels", metavar="FILE", help="The right answers to --inputs for --metric: .npy; for map, COCO's .json."
)
@click.option("--threads", type=int, help="Threads of every contestant.  [default: all cores]")
@click.option(
    "--budget",
    type=DURATION,
    help="Race until every comparison is decided, or for DURATION."
    "  [default: 60s, up to 150s while too few blocks have run to claim anything]",
)
@click.option(
    "--only-winner", is_flag=True, default=None, help="Compare only the fastest with the others: decided sooner."
)
@click.option("--blocks", type=int, help="Run a fixed number of blocks: new processes of every contestant.")
@click.option("--target", type=SHARE, help="Race until every interval is within ±SHARE.")
@click.option(
    "--conditions",
    type=click.Choice(["controlled", "as-found", "both"]),
    help="Bind cores and fix memory behaviour, leave processes as they are, or race both in turn."
    "  [default: controlled]",
)
@click.option("--seconds", type=DURATION, help="Time measured in each process.  [default: 0.4s]")
@click.option("--seed", type=click.IntRange(min=0), help="Draw orders and settings from this seed.  [default: random]")
@click.option(
    "--data-seed",
    type=click.IntRange(min=0),
    help="Draw weights and inputs from this seed.  [default: 0, 1 and 2 in turn; with --to-score 0 to 4]",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and run nothing.")
@click.option("--save-plan", type=FILE, help="Write the plan to a file.")
@click.option("--plan", "plan_file", type=FILE, help="Run a saved plan.")
@click.option("--resume", metavar="RUN", help="Resume an interrupted run: `last`, an id or its beginning.")
@click.option(
    "--memory-limit",
    "memory_limit_bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Limit the address space of every worker.",
)
@click.option(
    "--min-memory",
    is_flag=True,
    default=None,
    help="Search for the smallest memory in which each contestant runs, after the blocks.",
)
@click.option(
    "--profile",
    is_flag=True,
    default=None,
    help="Show the operators, or a GPU's kernels, that take the time, from profilers in untimed processes.",
)
@click.option(
    "--max-batch",
    is_flag=False,
    flag_value=MOST_BATCH,
    type=click.IntRange(1, MOST_BATCH),
    metavar="[LIMIT]",
    help="Search for the largest batch that fits into memory for each contestant, up to LIMIT, after the blocks.",
)
@click.option(
    "--max-batch-budget", type=DURATION, help="With --max-batch: stop each search after DURATION.  [default: 2m]"
)
@click.option(
    "--best-budget",
    type=DURATION,
    help="Stop the search for the settings of each contestant such as torch:best after DURATION.  [default: 60s]",
)
@click.option(
    "--recompile",
    type=NAMES,
    metavar="BATCH|SIZE=N|TYPE,...",
    help="Report what compiling did, and what calls at these batches, sizes (tokens=64) and types (float64) cost, in "
    "separate processes after the blocks.",
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

    Contestants have the same weights and inputs, and their outputs are checked. Every block runs each of them in a new
    process; the processes of a block take short turns, in random order. The race ends when every
    comparison is decided, or when the budget is spent. (`fairlap.compare` in Python compares callables in one process
    instead: quicker, but blind to differences between processes.)

    Several values of --batch, --mode and --precision are raced in every combination. A request file in TOML holds all
    options; those on the command line win.

    Exit status: 0 when a contestant finished, 1 when none did or a file or data was lost, 2 for an invalid request,
    130 after Ctrl-C.
    """
    from fairlap.cli.run_race import checked_output, run_race
    from fairlap.race.plan import load_plan
    from fairlap.race.plan import save_plan as save
    from fairlap.race.plan_from_request import plan_of
    from fairlap.race.resume import require_same_sources
    from fairlap.store.run_sources import require_contestant

    given = {name: value for name, value in given.items() if value not in (None, ())}
    if resume is not None and plan_file is not None:
        raise InvalidRequest("a resumed run has its own plan; leave --plan out")
    resumed, options = None, None
    notify = progress_notes(quiet=quiet)
    if resume is not None or plan_file is not None:
        options = _options_of_saved_plan(models, given)
    if resume is not None:
        if not store:
            raise InvalidRequest("a resumed run is stored; leave --no-store out", code="E_RESUME")
        resumed = _resumable(resume, notify)
        plan = resumed.run.plan
    elif plan_file is not None:
        plan = load_plan(plan_file)
        require_same_sources(plan, notify)
    else:
        request = _requested(models, given)
        output = checked_output(request, request, store=store, quiet=quiet, as_json=as_json)
        plan = plan_of(request, notify)
        require_contestant(plan, request.baseline)
    if options is not None:
        output = checked_output(plan, options, store=store, quiet=quiet, as_json=as_json)
    if save_plan is not None:
        save(plan, save_plan)
    if dry_run:
        _print_plan(plan, as_json=as_json)
        return
    raise SystemExit(run_race(plan, output, resumed))


def _requested(models: tuple[str, ...], given: dict[str, Any]) -> RaceRequest:
    import msgspec

    from fairlap.request.race_request import RaceRequest, read_request

    if not any(model.lower().endswith(".toml") for model in models):
        if not models:
            raise InvalidRequest("give a model and contestants: fairlap compare mlp --on torch,jax")
        if "contestants" not in given:
            raise InvalidRequest(
                f"name the contestants with --on, such as --on torch,jax; `fairlap list routes {models[0]}` lists "
                "those that can run a file of yours"
            )
        return RaceRequest(models=models, **given)
    if len(models) > 1:
        raise InvalidRequest("a request file names its own models; give it alone")
    return msgspec.structs.replace(read_request(Path(models[0])), **given)


def _options_of_saved_plan(models: tuple[str, ...], given: dict[str, Any]) -> RaceOptions:
    from fairlap.request.race_request import RaceOptions

    excess = [name for name in given if name not in RaceOptions.__struct_fields__]
    if models or excess:
        named = f"--{excess[0].removesuffix('_bytes').replace('_', '-')}" if excess else "MODEL"
        named = {"--contestants": "--on"}.get(named, named)
        raise InvalidRequest(f"a saved plan decides this already; leave {named} out")
    return RaceOptions(**given)


def _resumable(name: str, notify: Callable[[str], None]) -> StoredRun:
    """A stored run with its whole blocks. Blocks of two machines or of two sets of data do not make one run."""
    from fairlap.cli.run_race import StoredRun
    from fairlap.machine.facts import machine_facts
    from fairlap.race.resume import changed_data, require_same_sources, whole_blocks
    from fairlap.store.store import open_store

    if Path(name).exists() or Path(name).suffix:
        raise InvalidRequest(
            f"{name} is a file, and --resume takes the id of a stored run; store it with `fairlap runs import {name}`",
            code="E_RESUME",
        )
    with open_store(reading=True) as store:
        run_id = store.id_of(name)
        store.require_ended(run_id)
        run = store.load(run_id)
    here = machine_facts()
    differ = [f"{fact} was {run.machine.get(fact)}, is {here.get(fact)}" for fact in _SAME
              if run.machine.get(fact) != here.get(fact)]  # fmt: skip
    if differ:
        raise InvalidRequest(f"{run_id} cannot be resumed on another machine: {'; '.join(differ)}", code="E_RESUME")
    require_same_sources(run.plan, notify)
    run.processes = whole_blocks(run.plan, run.processes)
    for data in changed_data(run.plan, run.processes, notify):
        raise InvalidRequest(
            f"{run_id} cannot be resumed on other {data} (hashes); restore the data, or start a new run",
            code="E_RESUME",
        )
    return StoredRun(run, run_id)


def _print_plan(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        from fairlap.cli.output import print_json

        print_json(plan)
        return
    from fairlap.quantity_text import count
    from fairlap.request.work import work_title

    processes = "1 process" if plan.process_count() == 1 else f"{plan.process_count():,} processes"
    click.echo(f"seed {plan.seed}, {count(plan.threads, 'thread')}, {processes} in {count(len(plan.blocks), 'block')}")
    for block in plan.blocks:
        order = ", ".join(plan.contestants[place].text for place in block.order)
        drawn = f"hash seed {block.hash_seed}, {block.padding_bytes} bytes of padding, cores {block.cores}"
        title = work_title(plan.works[block.work].label, plan.data)
        click.echo(f"{block.number:4}  {block.conditions:<10}  {title}: {order}  ({drawn})")
