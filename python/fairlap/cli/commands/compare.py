"""``fairlap compare``: the same model in several frameworks, each in processes of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.output_options import agreed, given, output_options, replayed
from fairlap.cli.values import a_device, a_duration, a_share, some_of, whole_numbers
from fairlap.errors import InvalidRequest

if TYPE_CHECKING:
    from fairlap.cli.run_race import Earlier
    from fairlap.race.plan import Plan
    from fairlap.race.plan_from_request import Refuse
    from fairlap.request.race_request import RaceRequest

_SAME = ("cpu model", "cores", "architecture")  # of a machine that a run may be resumed on
_BESIDE_A_SAVED_PLAN = ("target", "budget", "baseline", "price")
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("compare")
@click.argument("models", nargs=-1, metavar="MODEL...|PLAN.toml")
@click.option("--on", "contestants", metavar="A,B,...", help="Contestants: torch, torch:compile, torch==2.13.0, ...")
@click.option("--batch", callback=whole_numbers, metavar="N,...", help="Items in one call.  [default: the model's]")
@click.option("--mode", callback=some_of("infer", "grad"), metavar="infer,grad", help="[default: infer]")
@click.option("--precision", callback=some_of("fp32", "bf16"), metavar="fp32,bf16", help="[default: fp32]")
@click.option("--device", callback=a_device, help="cpu, cuda or cuda:N.  [default: cpu]")
@click.option("--data", metavar="synthetic|PATH", help="Feed the calls: from drawn data, a .npy file or a folder.")
@click.option("--threads", type=int, help="Threads for every contestant.  [default: all cores]")
@click.option(
    "--blocks", type=int, help="Fresh processes for every contestant.  [default: 12; 60 with --target or --budget]"
)
@click.option("--target", callback=a_share, metavar="SHARE", help="End when every interval is as narrow as +- 1%, say.")
@click.option("--budget", callback=a_duration, metavar="TIME", help="End before this is over: 90s, 10m, 1h.")
@click.option(
    "--conditions",
    type=click.Choice(["controlled", "as-found"]),
    help="Controlled: the same memory behaviour for all, cores bound; as-found processes run beside.  "
    "[default: controlled]",
)
@click.option("--seconds", type=float, help="Measured in each process.  [default: 0.5]")
@click.option("--seed", type=click.IntRange(min=0), help="Draws orders and processes.  [default: drawn, and stored]")
@click.option("--dry-run", is_flag=True, help="Print the plan and run nothing.")
@click.option("--save-plan", type=_FILE, help="Write the plan there.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="Replay a saved plan.")
@click.option("--resume", metavar="RUN", help="Resume an interrupted run: `last`, an id or its beginning.")
@click.option(
    "--memory-limit",
    "memory_limit_bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Address space of a worker.",
)
@click.option(
    "--min-memory",
    is_flag=True,
    default=None,
    help="Then look for the smallest memory in which each contestant still runs.",
)
@output_options
def command(
    models: tuple[str, ...],
    dry_run: bool,
    save_plan: Path | None,
    plan_file: Path | None,
    resume: str | None,
    keep: bool,
    quiet: bool,
    **wishes: Any,
) -> None:
    """Compare frameworks on one or more models: same weights, outputs proven equal, fresh processes, one verdict.

    Several values of --batch, --mode and --precision race in every combination. A plan as a TOML file names models,
    contestants and all the rest; what is given beside it wins.
    """
    from fairlap.cli.run_race import run_and_tell
    from fairlap.race.plan import load_plan
    from fairlap.race.plan import save_plan as save
    from fairlap.race.plan_from_request import plan_of

    earlier = None
    refuse: Refuse = _refuse
    if resume is not None and plan_file is not None:
        raise InvalidRequest("a run that is resumed has its own plan; leave --plan out")
    if resume is not None or plan_file is not None:
        _beside_a_plan(models, wishes)
    if resume is not None:
        if not keep:
            raise InvalidRequest("a resumed run is stored; leave --no-keep out", code="E_RESUME")
        earlier = _resumable(resume)
        plan = earlier.run.plan
        asked = replayed(plan, wishes)
    elif plan_file is not None:
        plan = load_plan(plan_file)
        asked = replayed(plan, wishes)
    else:
        asked, refuse = _asked(models, wishes)
        plan = plan_of(asked, refuse)
    leaving_behind, ending = agreed(plan, asked, refuse, keep=keep, quiet=quiet)
    if save_plan is not None:
        save(plan, save_plan)
    if dry_run:
        _print(plan)
        return
    raise SystemExit(run_and_tell(plan, leaving_behind, ending, earlier))


def _resumable(name: str) -> Earlier:
    """A stored run with its whole blocks. Blocks of two machines or of two sets of data do not make one run."""
    from fairlap.cli.run_race import Earlier
    from fairlap.machine.facts import machine_facts
    from fairlap.race.resume import changed_data, whole_blocks
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
    differ = [
        f"{name} {run.machine.get(name)} there, {here.get(name)} here"
        for name in _SAME
        if run.machine.get(name) != here.get(name)
    ]
    if differ:
        raise InvalidRequest(f"{run_id} cannot be resumed on another machine: {'; '.join(differ)}", code="E_RESUME")
    run.processes = whole_blocks(run.plan, run.processes)
    for data in changed_data(run.plan, run.processes, lambda line: click.echo(f"fairlap: {line}", err=True)):
        raise InvalidRequest(
            f"{run_id} cannot be resumed on other {data} (hashes); restore the data, or start a new run",
            code="E_RESUME",
        )
    return Earlier(run, run_id)


def _asked(models: tuple[str, ...], wishes: dict[str, Any]) -> tuple[RaceRequest, Refuse]:
    """What the plan file says, and over it what stands on the command line."""
    import msgspec

    from fairlap.request.race_request import Outputs, RaceRequest
    from fairlap.request.toml_file import Key, TomlFile

    outputs, others = given(wishes)
    if not any(model.lower().endswith(".toml") for model in models):
        if not models or not any(others.get("contestants", ())):
            raise InvalidRequest("give a model and contestants, such as: fairlap compare mlp --on torch,jax")
        return RaceRequest(models=list(models), **others, outputs=Outputs(**outputs)), _refuse
    if len(models) > 1:
        raise InvalidRequest("a plan file names its own models; give it alone")
    file = TomlFile(Path(models[0]), "a plan")
    written = file.read(RaceRequest)
    changed = msgspec.structs.replace(written, **others, outputs=msgspec.structs.replace(written.outputs, **outputs))

    def refuse(key: Key, why: str) -> InvalidRequest:
        on_the_command_line = key[0] in others or (key[0] == "outputs" and key[-1] in outputs)
        return _refuse(key, why) if on_the_command_line else file.wrong(key, why)

    return changed, refuse


def _beside_a_plan(models: tuple[str, ...], wishes: dict[str, Any]) -> None:
    """A drawn plan is raced as it is; only where it ends and what it leaves behind may be asked for."""
    _, others = given(wishes)
    if models or "contestants" in others:
        raise InvalidRequest("a saved plan names its own models and contestants; leave MODEL and --on out")
    for name in others:
        if name not in _BESIDE_A_SAVED_PLAN:
            option = name.removesuffix("_bytes").replace("_", "-")
            raise InvalidRequest(f"a saved plan has drawn everything already; leave --{option} out")


def _refuse(key: tuple[str | int, ...], why: str) -> InvalidRequest:
    return InvalidRequest(why)


def _print(plan: Plan) -> None:
    from fairlap import quantity_text

    threads, blocks = quantity_text.count(plan.threads, "thread"), quantity_text.count(len(plan.blocks), "block")
    processes = (
        f"1 process in {blocks}" if plan.process_count() == 1 else f"{plan.process_count():,} processes in {blocks}"
    )
    click.echo(f"seed {plan.seed}, {threads}, {processes}")
    for block in plan.blocks:
        order = ", ".join(plan.contestants[place].text for place in block.order)
        drawn = f"hash seed {block.hash_seed}, {block.padding_bytes} bytes of padding, cores {block.cores}"
        click.echo(f"{block.number:4}  {block.conditions:<10}  {plan.works[block.work].label}: {order}  ({drawn})")
