"""Running the self-test and telling what came of it, also when it was interrupted.

``fairlap aa``: the referee on trial, on this machine.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import click
import msgspec

from fairlap import verdict
from fairlap.cli.values import a_device
from fairlap.engine.arguments import positive_number, whole_number
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Unsupported
from fairlap.interrupts import hear_no_more, heard_once, status_of
from fairlap.launch.runners import require_known
from fairlap.models.registry import find
from fairlap.race.materials import require_offered
from fairlap.race.self_test import NoVerdict, Tally, Trial, share_text, tally, verdicts_of
from fairlap.request.names import contestant_named
from fairlap.request.work import Conditions, Work
from fairlap.verdict.false_positive_rate import false_positives
from fairlap.worker.slowdown import OPTION, slowdown_in

_MOST_SEED = 2**31


def run_self_test(
    model: str,
    contestant: str,
    json_file: Path | None,
    *,
    runs: int,
    blocks: int,
    slowdown: str,
    batch: int | None,
    threads: int | None,
    conditions: Conditions,
    seconds: float,
    seed: int | None,
    device: str | None = None,
) -> int:
    """The exit status: 0 when the promise holds, 1 when it does not, 130 when interrupted."""
    spec = find(model).spec
    work = Work(model, spec.default_batch if batch is None else whole_number("batch", batch, least=1, most=2**20))
    require_offered(spec, work)
    name = contestant_named(contestant)
    require_known((name,))
    cores = tuple(sorted(os.sched_getaffinity(0)))
    try:
        share = slowdown_in({OPTION: slowdown}) if slowdown else 0.0
    except Unsupported as error:
        raise InvalidRequest(str(error)) from None
    trial = Trial(
        contestant=name,
        work=work,
        blocks=blocks,
        threads=len(cores) if threads is None else threads,
        cores=cores,
        conditions=conditions,
        seconds=positive_number("seconds", seconds),
        slowdown=slowdown if share else "",
        device=device or "cpu",
    )
    seed = secrets.randbelow(_MOST_SEED) if seed is None else seed
    second = f"the same made slower by {slowdown}" if share else "itself"
    click.echo(f"{name.text} on {work.label} against {second}: {runs} runs of {blocks} blocks, seed {seed}", err=True)
    with heard_once():
        return _run_and_tell(trial, runs, seed, share, json_file)


def _run_and_tell(trial: Trial, runs: int, seed: int, share: float, json_file: Path | None) -> int:
    verdicts: list[verdict.Comparison] = []
    interrupted = 0
    try:
        for found in verdicts_of(trial, runs, seed):
            verdicts.append(found)
            click.echo(f"[{len(verdicts)}/{runs}] {verdict.sentence(found)}", err=True)
        hear_no_more()
    except KeyboardInterrupt as interrupt:
        interrupted = status_of(interrupt)
        click.echo(f"fairlap: interrupted; {len(verdicts)} of {runs} runs are kept", err=True)
    except NoVerdict as error:
        click.echo(f"fairlap: run {len(verdicts) + 1} gave no verdict: {error}", err=True)
        if not verdicts:
            return 1
    if json_file is not None:
        _save(json_file, trial, seed, verdicts)
    if not verdicts:
        return interrupted
    kept = _told(tally(verdicts, 1 / (1 + share)), trial, share)
    return interrupted or (0 if kept else 1)


def _told(counted: Tally, trial: Trial, share: float) -> bool:
    """Print what was found; whether it is within what is promised."""
    if share:
        click.echo(f"found, with the right sign: {share_text(counted.faster, counted.runs)}")
        click.echo(f"claimed with the wrong sign: {share_text(counted.slower, counted.runs)}")
        click.echo(f"the true ratio lay in the interval: {share_text(counted.holds, counted.runs)}")
        largest = 100 * max(counted.detectable_effects)
        click.echo(f"the smallest detectable effects that the runs declared: at most {largest:.2g} %")
        return True
    allowed = false_positives(counted.claims, counted.runs, alpha=trial.alpha)
    click.echo(f"false differences claimed between identical contestants: {share_text(counted.claims, counted.runs)}")
    promise = f"at most {100 * trial.alpha:g} % are promised; up to {allowed.allowed} of {counted.runs} are in keeping"
    click.echo(f"{promise} with that: {'kept' if allowed.passed else 'NOT kept'}")
    return allowed.passed


def _save(file: Path, trial: Trial, seed: int, verdicts: list[verdict.Comparison]) -> None:
    rows = [
        {
            "verdict": each.verdict.value,
            "ratio": each.ratio,
            "interval": [each.interval.low, each.interval.high],
            "blocks": each.blocks,
            "detectable_effect": each.detectable_effect,
        }
        for each in verdicts
    ]
    try:
        file.write_bytes(msgspec.json.format(msgspec.json.encode({"trial": trial, "seed": seed, "verdicts": rows})))
    except OSError as error:
        raise InvalidRequest(f"{file} could not be written: {error.strerror}") from None


@click.command("aa")
@click.argument("model")
@click.option("--on", "contestant", required=True, metavar="A", help="Who races against itself: torch, jax, ...")
@click.option("--runs", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Verdicts to ask for.")
@click.option("--blocks", type=click.IntRange(6, 1_000), default=12, show_default=True, help="Blocks in each run.")
@click.option("--slowdown", default="", metavar="S", help="Make the second slower, 2% say: how often is it found?")
@click.option("--batch", type=int, help="Items in one call.  [default: the model's]")
@click.option("--device", callback=a_device, help="cpu, cuda or cuda:N.  [default: cpu]")
@click.option("--threads", type=int, help="Threads of the contestant.  [default: all cores]")
@click.option("--conditions", type=click.Choice(["controlled", "as-found"]), default="controlled", show_default=True)
@click.option("--seconds", type=float, default=0.5, show_default=True, help="Measured in each process.")
@click.option("--seed", type=int, help="Draws orders and processes.  [default: drawn, and printed]")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every verdict there.")
def command(model: str, contestant: str, json_file: Path | None, **wishes: Any) -> None:
    """Race a contestant against itself under two names, and count the differences claimed.

    Every one is false, and at most 5 % are promised. Exit status 1 when more were claimed than the promise allows.
    """
    raise SystemExit(run_self_test(model, contestant, json_file, **wishes))
