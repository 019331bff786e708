"""``fairlap sweep FILE.toml...``: races whose blocks are spread over the machines of a cluster."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON, WAIT, writable
from fairlap.cli.options.values import FILE, Choice
from fairlap.cli.output import print_error, print_json, print_line, print_note, print_result, progress_notes
from fairlap.cli.races.plan_trust import require_allowed
from fairlap.cli.races.planned_race import print_plan, warn_of_too_few_blocks
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.interrupts import ignore_signals, interrupted_once, status_of
from fairlap.printable import one_line
from fairlap.quantity_text import count

if TYPE_CHECKING:
    from fairlap.race.planning.plan import Plan
    from fairlap.store.file_store import Store
    from fairlap.store.sweeps import RunOfSweep, Spread, Sweep
    from fairlap.sweep.block import BlockReport
    from fairlap.sweep.machines import Machines


@click.command(
    "sweep",
    cls=Command,
    examples="""
fairlap sweep mlp.toml --cluster auto
    Spread the blocks of a race over the machines of a Ray cluster.
""",
)
@click.argument("files", nargs=-1, type=FILE, metavar="FILE.toml...")
@click.option(
    "--cluster",
    default="local",
    metavar="CLUSTER",
    help="local (the default), auto or ray://HOST:PORT: of Ray.",
)
@click.option(
    "--machines",
    type=Choice(["alike", "every"]),
    metavar="WHICH",
    help="alike ones share the blocks, or every one runs all.  [default: alike]",
)
@click.option("--resume", metavar="SWEEP", help="Run the missing blocks of a sweep: `last`, an id or its beginning.")
@click.option("--dry-run", is_flag=True, help="Show what would race, and run nothing.")
@click.option("--trust", is_flag=True, help="Allow files of models, and plans from elsewhere, to run code.")
@WAIT
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@OUTPUT_JSON
@JSON
def command(
    files: tuple[Path, ...],
    cluster: str,
    machines: Spread | None,
    resume: str | None,
    dry_run: bool,
    trust: bool,
    wait: bool | None,
    quiet: bool,
    output: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Run request files on the machines of a Ray cluster, block by block.

    A machine runs one block at a time, and nothing else of the cluster meanwhile. Each block is stored as soon as it
    has ended. A block whose node is lost is run again by another machine.

    Results of unlike machines are never pooled: each kind of machine has its own run of each request file, with the
    same orders, seeds and data. `fairlap across` puts the runs side by side.

    A race on the machine of a block is waited for there; on this machine, with --cluster local, by the whole sweep.

    A suite's file is one request for each of its races between contestants, which share one error rate.

    A request file needs `blocks` and `threads`. FAIRLAP_STORE names the store, a file or a PostgreSQL database.

    Exit status: 0 when all blocks are stored and a contestant finished, 1 when blocks are missing, 2 for an invalid
    request, 130 after Ctrl-C.
    """
    if bool(files) == (resume is not None):
        raise InvalidRequest("give request files, or --resume and the id of a sweep", code="E_SWEEP")
    if resume is not None and (machines or dry_run):
        raise InvalidRequest("a resumed sweep has its plans and machines; leave other options out", code="E_SWEEP")
    writable(output, only=(".json",))
    from fairlap.launch.cluster.ray_cluster import address_of
    from fairlap.machine.hardware.cuda_devices import each_device
    from fairlap.machine.race_lock.lock import one_race
    from fairlap.race.planning.plan_reach import allow
    from fairlap.store.store import open_store
    from fairlap.store.sweeps import load_sweep
    from fairlap.sweep.driver import begin
    from fairlap.sweep.requests import plans_of

    address_of(cluster)  # also where it is not asked
    notify = progress_notes(quiet=quiet).announce
    plans = plans_of(files, notify, trust=trust)
    for name, plan in plans.items():
        allow(plan)
        warn_of_too_few_blocks(plan, notify, f"{name}: ")
    if dry_run:
        _print_plans(plans, as_json=as_json)
        return
    if wait is not None and cluster != "local":
        raise InvalidRequest("each machine of a cluster waits for its own races; leave --wait out", code="E_SWEEP")
    with interrupted_once(), open_store() as store, ExitStack() as stack:
        resumed = None if resume is None else load_sweep(store, resume)
        for run in () if resumed is None else resumed.runs:
            require_allowed(run.plan, f"the plan of {run.run}", trust=trust)

        def sweep_on(found: Machines) -> Sweep:
            return resumed or begin(store, plans, found, machines or "alike", print_note)

        if cluster == "local":
            all_plans = plans.values() if resumed is None else [run.plan for run in resumed.runs]
            devices = {each for plan in all_plans for each in each_device(plan.all_devices)} - {"cpu"}
            try:
                stack.enter_context(one_race(",".join(sorted(devices)) or "cpu", wait=wait is not False, notify=notify))
            except KeyboardInterrupt as interrupt:
                print_note("interrupted while waiting for another race")
                raise SystemExit(status_of(interrupt)) from None
        raise SystemExit(_run(store, cluster, sweep_on, output, quiet=quiet, as_json=as_json))


def _print_plans(plans: dict[str, Plan], *, as_json: bool) -> None:
    from fairlap.sweep.summary import SweepPlans

    if as_json:
        print_json(SweepPlans(plans))
        return
    for name, plan in plans.items():
        print_line(f"{name}; cores are drawn again from those of each machine")
        print_plan(plan, None, as_json=False, is_saved=False)


def _run(
    store: Store,
    cluster_name: str,
    sweep_on: Callable[[Machines], Sweep],
    output: tuple[Path, ...],
    *,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run the sweep and return the exit status."""
    from fairlap.launch.cluster.ray_cluster import NodeFunctions, cluster_named
    from fairlap.sweep import node
    from fairlap.sweep.driver import Driver
    from fairlap.sweep.machines import Machines
    from fairlap.sweep.summary import document_of, incomplete, text_of_sweep

    driver: Driver | None = None
    interrupted = 0
    trouble: FairlapError | None = None

    def stored(run: RunOfSweep, block: int, report: BlockReport) -> None:
        if driver is not None and not quiet:
            _print_block(run, block, report, driver.counted)

    try:
        with closing(cluster_named(cluster_name, NodeFunctions(node.describe, node.run))) as cluster:
            found = Machines(cluster, print_note)
            found.wait_for_all()
            sweep = sweep_on(found)
            driver = Driver(sweep, cluster, found, store, print_note, stored)
            print_note(f"sweep {sweep.id}: {driver.counted} stored, {count(len(found.known()), 'node')}")
            try:
                driver.run()
            except FairlapError as error:
                trouble = error
            ignore_signals()
    except KeyboardInterrupt as interrupt:
        interrupted = status_of(interrupt)
        print_note("interrupted" + (f" after {driver.counted}" if driver else " before the first block"))
        if driver is None:
            return interrupted
    if trouble is not None:
        print_error(str(trouble), trouble.code, as_json=as_json)
    else:
        document = document_of(sweep, found.left_out, driver, store)
        print_result(document, text_of_sweep(document, store), as_json=as_json, output=output)
    if driver.done < driver.blocks:
        if not interrupted and trouble is None:
            print_error(incomplete(driver), "E_SWEEP_INCOMPLETE")
        print_note(f"resume with: {shlex.join(['fairlap', 'sweep', '--resume', sweep.id, '--cluster', cluster_name])}")
    finished = trouble is None and any(row.processes_finished for run in document.runs for row in run.rows)
    return interrupted or int(driver.done < driver.blocks or not finished)


def _print_block(run: RunOfSweep, block: int, report: BlockReport, counted: str) -> None:
    """Without times, as in a race: a reader who sees who leads may end the sweep when it suits."""
    bad = [each for each in report.processes if each.outcome != "finished"]
    what = "; ".join(f"{each.contestant}: {each.outcome.replace('_', ' ')}" for each in bad) or "finished"
    click.echo(one_line(f"[{counted}] block {block} of {run.request} on {run.hosts[block]}: {what}"), err=True)
