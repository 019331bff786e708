"""Running a plan from the command line: progress while it runs, then the store, the files and the answer."""

from __future__ import annotations

import contextlib
import math
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.options.output_options import writable
from fairlap.cli.output import print_error, print_json, print_note, progress_notes, set_statuses, status_of_loss
from fairlap.cli.own_process import OWN_PROCESS
from fairlap.cli.races.recorder import Recorder, StoredRun, named_sender
from fairlap.errors import InvalidRequest
from fairlap.interrupts import ignore_signals, interrupted_once, status_of
from fairlap.machine.hardware.cuda_devices import require_driver
from fairlap.machine.programs.orphans import adopt_orphans
from fairlap.machine.programs.passed_environment import require_confirmed as require_passing_confirmed
from fairlap.machine.race_lock.lock import one_race
from fairlap.race.around_blocks.after_blocks import Findings
from fairlap.race.around_blocks.best_settings import with_best_settings
from fairlap.race.around_blocks.profiles import require_trace_folder
from fairlap.race.own_race import OwnRace, own_race_of
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import plan_to_keep
from fairlap.race.planning.plan_required import changes_and_limits
from fairlap.race.planning.sources_from_request import metrics_named
from fairlap.race.progress import Messages, Silence, progress_for
from fairlap.race.race import Race
from fairlap.race.run import Run, roofs_for, with_continuation
from fairlap.race.scenario_side import race_sides, sides_asked
from fairlap.race.stopping import Ending, is_out_of_time
from fairlap.render.outputs import Format, write_all
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.server_address import require_confirmed
from fairlap.request.race_request import RaceOptions, RaceRequest
from fairlap.results.decision.gate_findings import Status, overall, require_known
from fairlap.results.decision.question import Question, question_of, with_decision
from fairlap.results.decision.required_decided import are_required_decided
from fairlap.results.decision.required_measured import metrics_of, require_computed
from fairlap.results.prices import Price, price_named
from fairlap.results.results import Results, results_of
from fairlap.scenarios.contract import require_settings
from fairlap.scenarios.learning.race.checkpoints import Checkpoints
from fairlap.scenarios.learning.race.kept_weights import KeptWeights
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.opening import require_folder, store_path
from fairlap.store.runs.run_file import run_document, save_run
from fairlap.store.runs.run_sources import require_contestant

if TYPE_CHECKING:
    import numpy as np


LEAST_BUDGET_S = 0.1
_PAUSES = 20.0


class Pace:
    """Does something again once twenty times as long has passed as it took, so that it takes a twentieth of all.

    A run file is written whole, of 1,200 processes in 2.7 s of CPU time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._next_s = clock, -math.inf

    @contextlib.contextmanager
    def if_due(self) -> Iterator[bool]:
        """Whether it is time; what is done within counts."""
        began_s = self._clock()
        due = began_s >= self._next_s
        yield due
        if due:
            ended_s = self._clock()
            self._next_s = ended_s + _PAUSES * (ended_s - began_s)


@dataclass(frozen=True)
class RunOutput:
    """What becomes of a race: its files, the store, and what is printed."""

    options: RaceOptions = field(default_factory=RaceOptions)
    files: tuple[tuple[Path, Format], ...] = ()
    price: Price | None = None
    question: Question | None = None
    store: bool = True
    quiet: bool = False
    as_json: bool = False
    answer: Callable[[Results, str], None] | None = None  # gets the results and the stored run's id; printed otherwise


def checked_output(
    asked: Plan | RaceRequest, options: RaceOptions, *, store: bool = True, quiet: bool = False, as_json: bool = False
) -> RunOutput:
    """Everything that can be wrong with the options is an error here, before data are loaded or a process starts."""
    if isinstance(asked, Plan):
        require_contestant(asked, options.baseline)
        require_confirmed(asked.contestants, remote=options.remote)
        require_passing_confirmed(asked.pass_env, options.pass_env)
    profiles = bool(asked.profile_processes) if isinstance(asked, Plan) else asked.profile
    require_trace_folder(options.trace, profiles=profiles)
    price = price_named(options.price) if options.price else None
    changes, limits = changes_and_limits(options.require)
    require_known(changes)
    if changes and isinstance(asked, Plan):
        wrong = (
            f"{changes[0].text!r}: a saved plan has the requirements on changes that it was drawn with; leave this out"
        )
        raise InvalidRequest(wrong, code="E_REQUIRE")
    question = question_of(limits, options.use)
    metrics = metrics_of(asked) if isinstance(asked, Plan) else metrics_named(asked)
    require_computed(question.requirements if question else (), metrics)
    files = tuple(writable(options.output))
    contents, sides = {path: chosen.content for path, chosen in files}, sides_asked(asked)
    for side in race_sides():
        side.require_output(options, contents, asked=side in sides)
    if store:
        named_sender()
        require_folder(store_path())
    return RunOutput(options, files, price, question, store, quiet, as_json)


def run_race(plan: Plan, output: RunOutput, resumed: StoredRun | None = None) -> int:
    """Run the race and return the exit status.

    It is 0 when a contestant finished; 1 when none did, under load none has a rate, or none reached the score, or when
    a file, data or the run is lost; 130 after Ctrl-C.
    """
    import fairlap.engine._native  # noqa: F401  (where it is not built, said here and not by every worker)

    if plan.required and output.answer is None:
        set_statuses(loss=int(Status.NOT_COMPARABLE))
    require_driver(plan.device)
    require_settings(plan.scenario_settings)
    if (context := click.get_current_context(silent=True)) and context.obj == OWN_PROCESS:
        adopt_orphans()
    with interrupted_once(), ExitStack() as stack:
        longest_s = Ending(plan, target=output.options.target, budget_s=output.options.budget).longest_s
        notes = progress_notes(quiet=output.quiet)
        try:
            stack.enter_context(
                one_race(plan.all_devices, wait=output.options.wait, longest_s=longest_s, notify=notes.announce)
            )
        except KeyboardInterrupt as interrupt:
            print_note("interrupted while waiting for another race; nothing was raced yet")
            return status_of(interrupt)
        return _run_race(plan, output, resumed)


def _run_race(plan: Plan, output: RunOutput, resumed: StoredRun | None) -> int:
    from fairlap.machine.facts import machine_facts

    before_race = Silence() if output.quiet else Messages()
    with before_race:
        try:
            plan = with_best_settings(plan, before_race)
        except KeyboardInterrupt as interrupt:
            print_note("interrupted while searching for the best settings; nothing was raced yet")
            return status_of(interrupt)
        began_at = resumed.run.began_at if resumed else datetime.now(UTC).isoformat(timespec="seconds")
        roofs = resumed.run.roofs if resumed else roofs_for(plan, before_race.announce, before_race.say)
    run = Run(plan_to_keep(plan), [], machine_facts(), {}, began_at, roofs=roofs)
    had_ended = resumed.had_ended if resumed else ""
    continued = resumed.continued_after if resumed else ()
    ending = Ending(
        plan,
        target=output.options.target,
        budget_s=output.options.budget,
        past_decision=bool(had_ended) and not is_out_of_time(had_ended),
        also_decided=partial(are_required_decided, plan),
    )
    progress = progress_for(plan, ending.longest_s, quiet=output.quiet)
    recorder = Recorder(run, resumed, progress) if output.store else None
    record = recorder.record if recorder else _discard
    checkpoints = Checkpoints(recorder.checkpoints if recorder else None, progress.say)
    before = resumed.run.processes if resumed else ()
    weights = KeptWeights(plan, output.options.keep_weights, progress.say, before)
    findings = Findings(traces=output.options.trace)
    if recorder:
        findings.keep_profile, findings.keep_compilation = recorder.record_profile, recorder.record_compilation
    if resumed:
        findings.profiles, findings.compilations = list(resumed.run.profiles), list(resumed.run.compilations)
    race: Race | OwnRace
    if (own_race := own_race_of(plan)) is not None:
        race = own_race(plan, progress, ending, record, before)
    else:
        race = Race(plan, progress, ending, record, before, {Checkpoints: checkpoints, KeptWeights: weights}, findings)
    run.processes, run.profiles, run.compilations = race.processes, findings.profiles, findings.compilations
    earlier_s: Mapping[str, float] = resumed.run.wall_s if resumed else {}
    if resumed:
        verb = "continued" if had_ended else "resumed"
        progress.say(f"{verb} with {plan.counted(len(race.processes))}")

    def update() -> None:
        run.wall_s = {name: seconds + earlier_s.get(name, 0.0) for name, seconds in race.shares().items()}
        run.ended_early = with_continuation(race.ended_early, continued)

    saving = Pace()

    def save_so_far() -> None:
        """Run files survive a kill, but for the last blocks. Whether they can be written is reported at the end."""
        if recorder is None or not recorder.has_unstored:
            checkpoints.remove_all()
        update()
        with saving.if_due() as due:
            for path in [path for path, chosen in output.files if due and chosen.name == "json"]:
                with contextlib.suppress(OSError):
                    save_run(path, run, run_id=recorder.run_id if recorder else "")

    interrupted = 0
    try:
        with progress:
            race.run(after_block=save_so_far)
        ignore_signals()
    except KeyboardInterrupt as interrupt:
        interrupted = status_of(interrupt)
        print_note(f"interrupted {_where(race, plan)}")
    update()
    if race.ended_early:
        progress.say(f"ended after {plan.counted(len(race.processes))}: {race.ended_early}")
    name = (recorder.run_id if recorder else "") or next((path.stem for path, _ in output.files), "") or began_at
    results = results_of(run, name, baseline=output.options.baseline, price=output.price)
    results = with_decision(results, output.question)
    run_id = recorder.end(results, interrupted=bool(interrupted)) if recorder else ""
    not_stored = recorder.loss if recorder else None
    if recorder and run_id:
        run_id, not_stored = recorder.send(run_id)
    failures = [*weights.failures, *write_all(output.files, results)]
    is_nowhere = not run_id and (not_stored is not None or bool(failures))
    elsewhere = _kept_elsewhere(run, output, failures) if is_nowhere else None
    try:
        if output.answer is None:
            _print_answer(results, as_json=output.as_json)
        else:
            output.answer(results, run_id)
    finally:  # also when standard output is full or closed
        for failure in failures:
            print_error(failure, "E_FILE")
        if elsewhere is not None:
            print_note(f"what was measured, but for raw samples, is in a file: `fairlap runs import {elsewhere}`")
        if not_stored is not None:
            print_error(*not_stored)
        if run_id and not_stored is None:
            print_note(f"stored as {run_id}; see `fairlap show {run_id}`")
        if output.answer is None and (interrupted or race.data_lost):
            print_note(_how_to_resume(plan, run_id, output, ending.budget_left_s()))
    lost = bool(failures or race.data_lost or not_stored)
    if plan.required and output.answer is None:
        return interrupted or int(overall(results.findings, strict=False)) or lost * status_of_loss()
    return interrupted or lost * status_of_loss() or int(not has_a_result(results))


def has_a_result(results: Results) -> bool:
    """Whether a contestant has what the race is about."""
    plan = results.run.plan
    return any(
        plan.scenario(each.work).has_result(each.work, result.finished)
        for each in results.work_results
        for result in each.contestants
    )


def _kept_elsewhere(run: Run, output: RunOutput, failures: Sequence[str]) -> Path | None:
    """Save a run that the store does not hold whole to a temporary file, unless another file of the race has it."""
    is_written = not failures and any(chosen.name == "json" for _, chosen in output.files)
    if not run.processes or is_written:
        return None
    try:
        path = Path(tempfile.mkdtemp(prefix="fairlap-run-")) / "race.json"
        save_run(path, run)
    except OSError:
        return None
    return path


def _where(race: Race | OwnRace, plan: Plan) -> str:
    if race.doing:
        return f"while {race.doing}"
    return f"after {plan.counted(len(race.processes))}"


def _print_answer(results: Results, *, as_json: bool) -> None:
    if as_json:
        print_json(run_document(results.run, results))
    else:
        click.echo(text_of(results))


def _how_to_resume(plan: Plan, run_id: str, output: RunOutput, budget_left_s: float | None) -> str:
    """Build the command that resumes the run: its id stands for the plan, and the other options are repeated.

    The budget is what is left of it.
    """
    if not run_id:
        return "this run is not stored and cannot be resumed"
    arguments = ["fairlap", plan.command, "--resume", run_id]
    for path, _ in output.files:
        arguments += ["--output", str(path)]
    options = output.options
    if options.keep_weights is not None:
        arguments += ["--keep-weights", str(options.keep_weights)]
    if options.trace is not None:
        arguments += ["--trace", str(options.trace)]
    _, limits = changes_and_limits(options.require)  # bounds on changes are part of the plan
    repeated = {"price": options.price, "require": limits, "for": options.use, "baseline": options.baseline}
    for name, value in (*repeated.items(), ("target", options.target)):
        if value:
            arguments += [f"--{name}", value if isinstance(value, str) else f"{float(value):g}"]
    arguments += ["--remote"] if options.remote else []
    arguments += [] if options.wait else ["--no-wait"]
    arguments += [word for name in options.pass_env for word in ("--pass-env", name)]
    arguments += ["--quiet"] if output.quiet else []
    arguments += ["--json"] if output.as_json else []
    if budget_left_s is not None:
        arguments += ["--budget", f"{max(budget_left_s, LEAST_BUDGET_S):.1f}s"]
    return f"resume with: {shlex.join(arguments)}"


def _discard(_process: ProcessResult, _samples_ns: Mapping[str, np.ndarray]) -> None:
    """For a run that is not stored."""
