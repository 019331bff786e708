"""``fairlap compare``: the same model in several frameworks, each in processes of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.wishes import a_device, a_duration, a_share

if TYPE_CHECKING:
    from fairlap.race.plan import Plan
    from fairlap.race.saving import SavedRun

_SAME = ("cpu model", "cores", "architecture")  # of a machine that a run may be resumed on
_BLOCKS = 12
_MOST_BLOCKS = 60  # when something else ends the race


@click.command("compare")
@click.argument("models", nargs=-1, metavar="MODEL...")
@click.option("--on", "listed", metavar="A,B,...", help="Contestants: torch, torch:compile, torch==2.13.0, jax, ...")
@click.option("--batch", type=int, help="Items in one call.  [default: the model's]")
@click.option("--mode", type=click.Choice(["infer", "grad"]), default="infer", show_default=True)
@click.option("--precision", type=click.Choice(["fp32", "bf16"]), default="fp32", show_default=True)
@click.option("--device", callback=a_device, default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--threads", type=int, help="Threads for every contestant.  [default: all cores]")
@click.option(
    "--blocks", type=int, help="Fresh processes for every contestant.  [default: 12; 60 with --target or --budget]"
)
@click.option("--target", callback=a_share, metavar="SHARE", help="End when every interval is as narrow as +- 1%, say.")
@click.option("--budget", callback=a_duration, metavar="TIME", help="End before this is over: 90s, 10m, 1h.")
@click.option(
    "--conditions",
    type=click.Choice(["controlled", "as-found"]),
    default="controlled",
    show_default=True,
    help="Controlled: the same memory behaviour for all, cores bound; as-found processes run beside.",
)
@click.option("--seconds", type=float, default=0.5, show_default=True, help="Measured in each process.")
@click.option("--seed", type=int, help="Draws orders and processes.  [default: drawn, and stored]")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write everything there.")
@click.option("--dry-run", is_flag=True, help="Print the plan and run nothing.")
@click.option("--save-plan", type=click.Path(dir_okay=False, path_type=Path), help="Write the plan there.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="Replay a saved plan.")
@click.option("--resume", "resume_file", type=click.Path(path_type=Path), metavar="FILE", help="Go on with a run.")
@click.option("--quiet", "-q", is_flag=True, help="No progress; the answer and what went wrong only.")
@click.option("--memory-limit", metavar="BYTES", type=int, help="Address space that a worker may take.")
def command(
    models: tuple[str, ...],
    listed: str | None,
    json_file: Path | None,
    dry_run: bool,
    save_plan: Path | None,
    plan_file: Path | None,
    resume_file: Path | None,
    quiet: bool,
    target: float | None,
    budget: float | None,
    **wishes: Any,
) -> None:
    """Compare frameworks on one or more models: same weights, outputs proven equal, fresh processes, one verdict."""
    from fairlap.errors import WrongRequest
    from fairlap.race.plan import load_plan
    from fairlap.race.plan import save_plan as save

    resumed = None
    if resume_file is not None:
        if models or listed or plan_file:
            raise WrongRequest("a run that is resumed has its own plan; leave MODEL, --on and --plan out")
        resumed = _resumable(resume_file)
        plan = resumed.plan
        json_file = json_file or resume_file
    elif plan_file is not None:
        if models or listed:
            raise WrongRequest("a saved plan names its own models and contestants; leave MODEL and --on out")
        plan = load_plan(plan_file)
    else:
        if not models or not listed:
            raise WrongRequest("give a model and contestants, such as: fairlap compare mlp --on torch,jax")
        if wishes["blocks"] is None:
            wishes["blocks"] = _BLOCKS if target is None and budget is None else _MOST_BLOCKS
        plan = _drawn(models, listed, **wishes)
    if save_plan is not None:
        save(plan, save_plan)
    if dry_run:
        _print(plan)
        return
    if json_file is not None and not json_file.parent.is_dir():
        raise WrongRequest(f"{json_file} cannot be written: {json_file.parent} is not a folder")
    from fairlap.race.ending import Ending
    from fairlap.race.telling import run_and_tell

    ending = Ending(plan, target=target, budget_s=budget)
    raise SystemExit(run_and_tell(plan, json_file, ending, resumed=resumed, quiet=quiet))


def _resumable(file: Path) -> SavedRun:
    """Blocks of two machines are no longer blocks of one race."""
    from fairlap.errors import WrongRequest
    from fairlap.machine.facts import machine_facts
    from fairlap.race.saving import load_run

    run, here = load_run(file), machine_facts()
    differ = [
        f"{name} {run.machine.get(name)} there, {here.get(name)} here"
        for name in _SAME
        if run.machine.get(name) != here.get(name)
    ]
    if differ:
        raise WrongRequest(f"{file} cannot be resumed on another machine: {'; '.join(differ)}")
    return run


def _drawn(
    models: tuple[str, ...],
    listed: str,
    *,
    batch: int | None,
    mode: Any,
    precision: Any,
    device: str,
    threads: int | None,
    blocks: int,
    conditions: Any,
    seconds: float,
    seed: int | None,
    memory_limit: int | None,
) -> Plan:
    import os
    import secrets

    from fairlap.engine.wishes import positive_number, whole_number
    from fairlap.race.contestants import require_known
    from fairlap.race.materials import require_offered
    from fairlap.race.naming import contestants_named
    from fairlap.race.plan import Limits, Measuring, Work, draw_plan
    from fairlap.workloads.registry import find

    seconds = positive_number("seconds", seconds)
    if batch is not None:
        batch = whole_number("batch", batch, least=1, most=2**20)
    cores = tuple(sorted(os.sched_getaffinity(0)))
    works = []
    for model in models:
        spec = find(model).spec
        work = Work(spec.name, batch or spec.default_batch, mode, precision)
        require_offered(spec, work)
        works.append(work)
    contestants = contestants_named(listed)
    require_known(contestants)
    return draw_plan(
        contestants,
        tuple(works),
        blocks=blocks,
        conditions=conditions,
        threads=len(cores) if threads is None else threads,
        available_cores=cores,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        measuring=Measuring(seconds=seconds),
        limits=Limits(memory_bytes=memory_limit),
        device=device,
    )


def _print(plan: Plan) -> None:
    click.echo(f"seed {plan.seed}, {plan.threads} threads, {plan.processes()} processes in {len(plan.blocks)} blocks")
    for block in plan.blocks:
        order = ", ".join(plan.contestants[place].text for place in block.order)
        drawn = f"hash seed {block.hash_seed}, {block.padding_bytes} bytes of padding, cores {block.cores}"
        click.echo(f"{block.number:4}  {block.conditions:<10}  {plan.works[block.work].label}: {order}  ({drawn})")
