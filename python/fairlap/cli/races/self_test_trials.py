"""The trials of ``fairlap self-test``: run, counted and printed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import msgspec

from fairlap import quantity_text, verdict
from fairlap.cli.options.output_options import writable
from fairlap.cli.output import print_note, print_result
from fairlap.errors import InvalidRequest
from fairlap.interrupts import ignore_signals, interrupted_once, status_of
from fairlap.launch.runners import require_known
from fairlap.machine.control_group import cores_worth
from fairlap.machine.hardware.cuda_devices import require_driver
from fairlap.machine.race_lock.lock import one_race
from fairlap.printed_document import PrintedDocument
from fairlap.race.planning.works_from_request import works_asked
from fairlap.race.scenario_side import mode_asked, sides_asked
from fairlap.race.self_test import NoVerdict, Tally, Trial, share_text, tally, verdicts_of
from fairlap.request.fields.server_address import require_confirmed
from fairlap.request.names import ContestantName, Contestants
from fairlap.request.race_request import DEFAULT_BUDGET_S, RaceRequest
from fairlap.request.units import require_within_a_day
from fairlap.request.work import Conditions, Work
from fairlap.verdict.false_positive_rate import false_positives

_MOST_SEED = 2**31


class TrialVerdict(msgspec.Struct, frozen=True):
    verdict: str
    ratio: float
    interval: tuple[float | None, float | None]
    blocks: int
    detectable_effect: float | None


class SelfTestDocument(PrintedDocument, frozen=True, tag="fairlap.self-test/1"):
    trial: Trial
    seed: int
    passed: bool  # within the promise; always true with --slowdown
    verdicts: list[TrialVerdict]


def run_self_test(
    model: str,
    name: ContestantName,
    *,
    output: tuple[Path, ...],
    as_json: bool,
    runs: int,
    blocks: int | None,
    budget: float | None,
    slowdown: float | None,
    batch: int | None,
    threads: int | None,
    conditions: Conditions,
    seconds: float,
    seed: int | None,
    device: str,
    wait: bool | None,
    streamed: Work | None = None,
    **of_scenario: Any,
) -> int:
    """Run the trials and return the exit status: 0 when the promise holds, 1 when it does not, 130 when interrupted.

    ``of_scenario`` are fields of a request that ask for a scenario; ``streamed`` is what a server is asked instead.
    """
    work = streamed
    if work is None:
        work = _work_asked(model, name, batch, of_scenario)
        require_known((name,))
        require_confirmed((name,), remote=False)
    if name.best:
        raise InvalidRequest(
            f"{name.text}: a self-test races fixed settings; write the variant and the options instead of best"
        )
    require_within_a_day("--seconds", seconds)
    require_driver(str(device))
    cores = tuple(sorted(os.sched_getaffinity(0)))
    writable(output, only=(".json",))
    trial = Trial(
        contestant=name,
        work=work,
        blocks=blocks,
        budget_s=DEFAULT_BUDGET_S if budget is None else float(budget),
        threads=cores_worth(len(cores)) if threads is None else threads,
        cores=cores,
        conditions=conditions,
        seconds=float(seconds),
        slowdown=f"{100 * slowdown:g}%" if slowdown else "",
        device=str(device),
        **of_scenario,
    )
    seed = secrets.randbelow(_MOST_SEED) if seed is None else seed
    second = f"itself slowed down by {trial.slowdown}" if slowdown else "itself"
    length = (
        f"of {quantity_text.count(blocks, 'block')}"
        if blocks
        else f"until decided or for {quantity_text.seconds(trial.budget_s)}"
    )
    click.echo(
        f"{name.text} on {work.label} against {second}: {quantity_text.count(runs, 'run')} {length}, seed {seed}",
        err=True,
    )
    longest_s = None if blocks else runs * trial.budget_s
    with interrupted_once(), ExitStack() as stack:
        try:
            stack.enter_context(one_race(trial.device, wait=wait is not False, longest_s=longest_s, notify=print_note))
        except KeyboardInterrupt as interrupt:
            print_note("interrupted while waiting for another race")
            return status_of(interrupt)
        return _run_self_test(trial, runs, seed, slowdown or 0.0, output, as_json=as_json)


def _work_asked(model: str, name: ContestantName, batch: int | None, of_scenario: Mapping[str, Any]) -> Work:
    request = RaceRequest(models=(model,), contestants=Contestants.of((name,)), batch=batch, **of_scenario)
    request = msgspec.structs.replace(request, mode=mode_asked(request))
    offered = works_asked(request, (), lambda _: None)
    for side in sides_asked(request):
        side.plan_fields(request, offered)
    [(work, _)] = offered
    return work


def _run_self_test(
    trial: Trial, runs: int, seed: int, slowdown: float, output: tuple[Path, ...], *, as_json: bool
) -> int:
    verdicts: list[verdict.Comparison] = []
    interrupted = 0
    try:
        for found in verdicts_of(trial, runs, seed):
            verdicts.append(found)
            click.echo(f"[{len(verdicts)}/{runs}] {verdict.sentence(found)}", err=True)
        ignore_signals()
    except KeyboardInterrupt as interrupt:
        interrupted = status_of(interrupt)
        click.echo(f"fairlap: interrupted; {len(verdicts)} of {runs} runs are done", err=True)
    except NoVerdict as error:
        print_note(f"run {len(verdicts) + 1} gave no verdict: {error}")
        if not verdicts:
            return 1
    if not verdicts:
        return interrupted
    least = verdict.blocks_to_claim(contestants=2)
    able = [each for each in verdicts if each.blocks >= least]
    if len(able) < len(verdicts):
        lacking = f"{len(verdicts) - len(able)} of {len(verdicts)} runs had fewer than the {least} blocks"
        print_note(f"{lacking} that a claim takes, and prove nothing; give a longer --budget, or --blocks {least}")
    if not able:
        return interrupted or 1
    counted = tally(able, 1 / (1 + slowdown))
    text, passed = _summary(counted, trial, slowdown)
    print_result(_document(trial, seed, verdicts, passed), text, as_json=as_json, output=output)
    return interrupted or (0 if passed else 1)


def _summary(counted: Tally, trial: Trial, slowdown: float) -> tuple[str, bool]:
    """Summarize the trials, and decide whether the result is within the promise."""
    if slowdown:
        lines = [
            f"slowdown found: {share_text(counted.faster, counted.runs)}",
            f"found with the wrong sign: {share_text(counted.slower, counted.runs)}",
            f"intervals that contain the true ratio: {share_text(counted.holds, counted.runs)}",
            f"largest minimum detectable effect: {100 * max(counted.detectable_effects):.2g} %",
        ]
        return "\n".join(lines), True
    allowed = false_positives(counted.claims, counted.runs, alpha=trial.alpha)
    promise = f"at most {100 * trial.alpha:g} % are promised, which allows up to {allowed.allowed} of {counted.runs}"
    lines = [
        f"differences found between identical contestants: {share_text(counted.claims, counted.runs)}",
        f"{promise}: {'passed' if allowed.passed else 'FAILED'}",
    ]
    return "\n".join(lines), allowed.passed


def _document(trial: Trial, seed: int, verdicts: list[verdict.Comparison], passed: bool) -> SelfTestDocument:
    rows = [
        TrialVerdict(
            each.verdict.value,
            each.ratio,
            (each.interval.low, each.interval.high),
            each.blocks,
            each.detectable_effect,
        )
        for each in verdicts
    ]
    return SelfTestDocument(trial, seed, passed, rows)
