"""One contestant's process in a block, stage by stage. What goes wrong in a stage becomes its outcome and ends it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

import numpy as np

from fairlap.errors import FairlapError
from fairlap.launch.runners import NoNode, NoRoute, Runner
from fairlap.launch.worker_lost import WorkerLost, under_a_limit
from fairlap.launch.worker_process import Samples, WorkerProcess
from fairlap.meters.disturbances import StepsMeter
from fairlap.models.array_files import safetensors
from fairlap.models.array_files.safetensors import BadFile, NotWritten
from fairlap.models.call_cost import call_cost
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.race.equal_work.timed_work import TimedWork, require_done
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import OneProcess, after_turns
from fairlap.race.processes.at_scale import devices_here, plan_for, record_memory, record_ranks, runner_for, step_alone
from fairlap.race.processes.bench import Bench
from fairlap.race.processes.block_worker import block_worker, request_for, unseen_orphans
from fairlap.race.processes.contained import unequal_share
from fairlap.race.processes.counted_allocations import count_allocations
from fairlap.race.processes.recorded_turns import Turn, record_energy, record_one_turn, record_rounds
from fairlap.race.processes.turn_start import MemoryDeals, unused_calls
from fairlap.scenarios.process_result import Outcome, ProcessResult
from fairlap.worker import protocol

_FEWEST_CALLS = 10
_FEWEST_SAMPLES = 2
_FIRST = "before"
_WARM_UP_S = 0.15
_WARM_UP_OF_LATER_S = 0.06  # of a process that is warm from other works
_SHORTEST_CALL_S = 1e-5  # of a shorter one, the checked call says nothing


def _stage(method: Callable[[ProcessRun], None]) -> Callable[[ProcessRun], None]:
    """Run a stage, unless the process is over. Only Ctrl-C is raised, and that the disk is full."""

    @wraps(method)
    def run(self: ProcessRun) -> None:
        if self.over:
            return
        began_s = time.monotonic()
        try:
            method(self)
        except WorkerLost as found:
            lost = under_a_limit(found, self.plan.limits.memory_bytes)
            self.result.details = lost.details
            self._end_as(lost.outcome, lost.code, lost.message)
        except answers.OtherWork as wrong:
            self._end_as("disqualified", wrong.code, str(wrong))
        except NotWritten:  # by fairlap itself: it says nothing about this contestant
            raise
        except BadFile as wrong:
            self._end_as("disqualified", "E_OUTPUT", str(wrong))
        except FairlapError as error:
            self._end_as("failed", error.code, str(error))
        finally:
            self.result.elapsed_s += time.monotonic() - began_s

    return run


class ProcessRun:
    """``over`` when nothing more can be asked of it; ``result`` then says what became of it."""

    def __init__(
        self, result: ProcessResult, block: Block, plan: Plan, materials: Materials, runner: Runner, bench: Bench
    ) -> None:
        self.result, self.plan = result, plan_for(plan, materials.work)
        self.over = False
        self.turns: list[Turn] = []
        self.rounds = plan.measuring.rounds
        self._block, self._materials, self._bench = block, materials, bench
        self._given_plan, self._runner = plan, runner_for(runner, plan, materials.work)
        self._worker: WorkerProcess | None = None
        self._meter: StepsMeter | None = None
        self._use = bench.kept_workers.use(block, self._runner, result)
        self._deals = MemoryDeals(self.plan, block, result, materials)
        self._timed_work = TimedWork(self.plan, block, result, materials, bench.scratch)
        self._after_turns = after_turns(plan, block, materials, bench.scratch, runner.name)
        self.samples: Samples = {} if self._after_turns is None else self._after_turns.samples  # also of a lost one

    @property
    def devices(self) -> str:
        """Where it runs on this machine: ``cpu``, or ``cuda:0,cuda:1`` of ranks."""
        return devices_here(self._given_plan, self._materials.work)

    @property
    def weight_bytes(self) -> int:
        """What it holds at least."""
        return self._materials.weight_bytes

    @_stage
    def start(self) -> None:
        """Without waiting for the worker's first message."""
        if missing := self._runner.missing:
            outcome: Outcome = "unsupported" if isinstance(missing, NoRoute | NoNode) else "not_installed"
            self._end_as(outcome, missing.code, str(missing))
            return
        self._worker = self._use.kept() or block_worker(
            self._block,
            self._runner,
            self.plan.limits,
            greeted=False,
            ends_by_s=self._bench.ends_by_s,
            longest_request_s=self._bench.longest_request_s,
        )
        self.result.phases_s = self._worker.phases_s  # one and the same, so that a lost worker's phases are kept

    @_stage
    def begin_to_prepare(self) -> None:
        self._use.wake(self._here)
        controlled = self._block.conditions == "controlled"
        request = request_for(self._given_plan, self._materials, self._runner, bind_ranks=controlled)
        self._here.begin_to_prepare(request, within_s=self.plan.limits.prepare_s)

    @_stage
    def prepared(self) -> None:
        prepared = self._here.prepared()
        self.result.version, self.result.in_force = prepared.version, prepared.in_force
        self.result.route, self.result.work_in = prepared.route, prepared.work_in
        if prepared.route:  # some adapters convert in a separate phase
            self.result.conversion_s = prepared.conversion_s or self.result.phases_s.get("convert")
        self.result.zero_weights = self._materials.zero_weights
        self.result.call_cost = call_cost(self._materials.spec, self._materials.work)
        self.result.tokens_per_call = self._materials.spec.tokens_of_an_answer * self._materials.work.batch
        of_process = [*unseen_orphans(self._here), *unequal_share(self._here, self.plan)]
        self.result.warnings = [*self.result.warnings, *self._materials.notices, *of_process]
        record_ranks(self.result, prepared)
        threads = self._runner.name.threads(self.plan.threads_of(self._materials.work))
        wanted = self._materials.work.precision, self._materials.own_types
        answers.require_settings(prepared.in_force, threads, *wanted)
        answers.require_weights(self._materials, prepared.weights_hash)

    @_stage
    def check_answers(self) -> None:
        first = self._answer("inputs", _FIRST)
        errors = self._bench.agreement.errors(self._materials, self.result.contestant, first)
        self.result.errors += errors
        answers.require_right(errors, self.result.in_force, self._materials.own_types)
        self.result.warnings = [*self.result.warnings, *self._materials.unseen_mistakes()]
        changed = self._answer("changed", "changed inputs")
        if self._materials.tells_inputs_apart:
            answers.require_changed(first, changed, self._materials.work.precision)
        if self._bench.feeding:
            limit_s = self.plan.limits.answer_s
            self._bench.feeding.begin(self._here, self.result, self._materials, self._bench.scratch, limit_s)

    @_stage
    def measure_in_one_turn(self) -> None:
        # A slow call is measured for longer: a median of one sample would be no median.
        seconds = max(self.plan.measuring.seconds, _FEWEST_CALLS * self._call_s)
        energy = self._reads_energy
        self._take(seconds, energy=energy, turns_left=1)
        if len(self.turns[0].headline_ns) < _FEWEST_SAMPLES:  # the machine was quieter during the checked calls
            took_s = self.turns.pop().measured.elapsed_s
            self._take(_FEWEST_CALLS * took_s, energy=energy, turns_left=1)  # all drawn calls have been made

    @_stage
    def warm_up(self) -> None:
        """Take its first turn, which finds how many calls make a sample.

        It is not a round, and its length is fixed: waiting until times have settled takes seconds on a busy machine,
        and what settles late is seen in the rounds.
        """
        seconds = _WARM_UP_OF_LATER_S if self.result.works_before else _WARM_UP_S
        calls = math.ceil(seconds / max(self._call_s, _SHORTEST_CALL_S))
        self._take(self._turn_s, warmup=calls)

    @_stage
    def take_a_turn(self) -> None:
        began_s = time.monotonic()
        warm_up = self.turns[0]
        call_s = float(np.nanmedian(warm_up.calls_ns)) / 1e9  # the checked calls took longer
        self._take(
            self._turn_s,
            warmup=unused_calls(call_s, self._turn_s),
            calls_per_sample=warm_up.measured.calls_per_sample,
            turns_left=max(self.rounds + 1 - len(self.turns), 1),
            deal=self._deals.seed(len(self.turns)),
        )
        took_s = time.monotonic() - began_s
        self.result.in_rounds_s += took_s
        self._deals.record(self.turns[-1].measured, took_s)

    @_stage
    def read_energy(self) -> None:
        """One long turn, since sensors are too coarse for a short one; its times are not used."""
        if self._reads_energy:
            self._take(max(self.plan.measuring.seconds, _FEWEST_CALLS * self._call_s), energy=True)
            self.result.energy = self.turns.pop().measured.energy

    @property
    def has_steps(self) -> bool:
        """Whether more than calls is asked of it."""
        return self._after_turns is not None

    @property
    def goes_on(self) -> bool:
        """Whether there is another step after its turns."""
        return not self.over and self._after_turns is not None and self._after_turns.goes_on(self._bench)

    @_stage
    def begin_after_turns(self) -> None:
        if self._after_turns is not None:
            self._after_turns.begin(self._as_one)

    @_stage
    def step_after_turns(self) -> None:
        assert self._after_turns is not None
        as_one = self._as_one
        self._after_turns.step(as_one)
        self.result.machine_after_turns = as_one.meter.readings()

    @_stage
    def finish_in_one_turn(self) -> None:
        self._finish(lambda: record_one_turn(self.result, self.turns[0]))

    @_stage
    def finish_in_rounds(self) -> None:
        self._finish(lambda: record_rounds(self.result, self.turns))

    def _finish(self, record: Callable[[], Samples]) -> None:
        as_one = self._as_one
        self._last_answer()
        self.samples = {**record(), **self.samples}
        self._require_plausible()
        record_energy(self.result, self._bench.sensed)
        if self._after_turns is not None:
            self._after_turns.end(as_one)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """For as long as this process has the machine; frozen before and after."""
        self.thaw()
        try:
            yield
        finally:
            self.freeze()

    @_stage
    def freeze(self) -> None:
        if self._worker is not None:
            self._worker.freeze()

    @_stage
    def thaw(self) -> None:
        if self._worker is not None:
            self._worker.thaw()

    def end(self) -> None:
        self.over = True
        if self._worker is not None:
            self._use.keep_or_end(self._worker)
            self._worker = None  # its pipes close now, not when a signal may come

    @property
    def pid(self) -> int | None:
        return None if self._worker is None or self.over else self._worker.pid

    @property
    def _here(self) -> WorkerProcess:
        assert self._worker is not None
        return self._worker

    @property
    def _as_one(self) -> OneProcess:
        self._meter = self._meter or StepsMeter(self.pid)
        return OneProcess(self._here, self.result, self._bench, self.turns[-1].headline_ns, self._meter)

    @property
    def _reads_energy(self) -> bool:
        """Whether sensors see its calls alone; nothing is read while a cache is flushed between them."""
        conditions = self._materials.work.on_device
        return bool(self._bench.sensed.idle) and (conditions is None or conditions.cache == "warm")

    @property
    def _call_s(self) -> float:
        """Of the checked calls together, the first excepted."""
        return self.result.phases_s["checked_calls"]

    @property
    def _turn_s(self) -> float:
        measuring = self.plan.measuring
        return measuring.seconds / measuring.rounds

    def _end_as(self, outcome: Outcome, code: str, message: str) -> None:
        self.result.outcome, self.result.code, self.result.message = outcome, code, message
        self.end()

    def _require_plausible(self) -> None:
        try:
            self._timed_work.require_plausible()
        except answers.OtherWork:
            self.samples, self.result.timings = {}, {}  # they are not the times of the work
            raise

    def _take(
        self,
        seconds: float,
        *,
        warmup: int | None = None,
        calls_per_sample: int | None = None,
        energy: bool = False,
        turns_left: int = 0,
        deal: int | None = None,
    ) -> None:
        """``turns_left`` is the number of turns to come over which checked calls are spread, this one included."""
        measured, samples_ns = self._timed_work.measure(
            self._here,
            turns_left,
            seconds=seconds,
            samples=self.plan.measuring.samples,
            warmup=warmup,
            calls_per_sample=calls_per_sample,
            within_s=self.plan.limits.measure_s,
            energy=energy,
            deal=deal,
            on_device=self._materials.work.on_device,
        )
        answers.require_conditions(self._materials.work.on_device, measured.device_conditions)
        self.turns.append(Turn(measured, samples_ns))

    def _last_answer(self) -> None:
        limit_s = self.plan.limits.answer_s
        if self._bench.feeding:
            fed = self._bench.scratch / "fed.safetensors"
            self._here.answer("fed", fed, within_s=limit_s)
            self._bench.feeding.hold_answer(fed, self.result, self._materials)
        self._bench.scores.take(self._here, self.result, self._materials, self._bench.scratch, limit_s)
        self._answer("inputs", "after")
        of_answers = mode_side(self._materials.work.mode).notices(self.result.errors)
        self.result.warnings = [*self.result.warnings, *of_answers]
        self._timed_work.require_no_kept_answers(self._here)
        if self._measured_at_the_end():
            record_memory(self.result, self._use.finish(self._here))
        self.over = True

    def _measured_at_the_end(self) -> bool:
        """Measure what is left for the end, and return False if the worker was lost over it."""
        if self.result.ranks is not None and mode_side(self._materials.work.mode).ranks_alone:
            return step_alone(self._here, self.plan, self.result)
        counted = count_allocations(self._here, self.result, self.plan)
        return counted and self._bench.overheads.measured(self._here, self.result, self.plan)

    def _answer(self, which: protocol.Which, when: str) -> Path:
        """Ask for an answer, compare it with the reference, and record the error also when it is right."""
        file = self._bench.scratch / f"{when.replace(' ', '-')}.safetensors"
        file.unlink(missing_ok=True)
        answered = self._here.answer(which, file, within_s=self.plan.limits.answer_s)
        if when != _FIRST:
            phases_s = self.result.phases_s
            phases_s["checked_calls"] = phases_s.get("checked_calls", 0.0) + answered.seconds
        where = f"a call ({when})"
        require_done(answered.reading, answered.seconds, where, self.plan.device)
        answer = safetensors.read(file)
        errors = answers.array_errors(self._materials, answer, which, when)
        if self._materials.spec.computes:
            self.result.errors += errors
        answers.require_right_on(self._materials, answer, which, errors, self.result.in_force, where)
        return file
