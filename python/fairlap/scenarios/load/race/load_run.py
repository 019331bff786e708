"""One process's search for its largest rate: a trial at a time, each checked before the next."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.launch.worker_process import Samples
from fairlap.models.array_files import safetensors
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import IN_TURN, UNSEEN, Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.request.fields.load import Load
from fairlap.request.names import ContestantName
from fairlap.scenarios.load.load_messages import STAMPS, LoadFound, LoadTrial, OfferLoad, TrialKind
from fairlap.scenarios.load.loadgen_messages import LoadGenFailed
from fairlap.scenarios.load.race.loadgen_check import LoadGenCheck
from fairlap.scenarios.load.race.rate_search import Offered, Searched, largest_met, rate_search
from fairlap.scenarios.process_result import AnswerError, ProcessResult

WHEN = "request"
"""``AnswerError.when`` of an answer to a drawn request."""

E_DROPPED_REQUESTS = "E_DROPPED_REQUESTS"
_MOST_SEED = 2**31
_LATE_SHARE = 0.1  # of the bound
_FEW_DIGITS_NS = 1e5
_GIVE_UP_S = 10.0
_GIVE_UP_TRIALS = 10.0
_STAMPED: tuple[TrialKind, ...] = ("capacity", "lone", "at_largest_rate", "curve")  # what a row's figures are from
_TOKENS_ALONE = "LoadGen logs whole answers, and this runtime hands out tokens alone"
_MOST_STAMPED = 1_000_000  # requests of one process, 32 bytes each


class LoadRun(AfterTurns):
    """``samples`` are the stamps of requests, by the place of the trial in the process: ``trial-0/due_ns``."""

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        load = materials.work.load
        assert load is not None
        self._is_over = False
        self._load, self._materials, self._limit_s = load, materials, plan.limits.measure_s
        self._trials: tuple[LoadTrial, ...] = ()
        self._file = scratch / "requests.safetensors"
        self._seeds = random.Random(f"load {plan.seed} {block.number}")
        self._name, self._seed = name, plan.seed + block.number
        text = name.text.replace("/", "-")
        self._logs = Path(load.logs) / f"block-{block.number}-{text}" if load.logs else scratch / "loadgen"
        self._is_first = block.number == min(each.number for each in plan.blocks if each.work == block.work)
        self._next: Offered | None = None

    def goes_on(self, bench: Bench) -> bool:
        return not self._is_over

    def step(self, process: OneProcess) -> None:
        """Make a trial, or end where the budget is spent."""
        result = process.result
        if not process.bench.may_go_on():
            self._end_by_budget(result)
            return
        if self._next is None:
            call_s = float(np.nanmedian(process.calls_ns)) / 1e9
            self._search = rate_search(self._load, call_s, curve=self._is_first)
            self._next = next(self._search)
        offered = self._next
        trial, stamps = self._offered(process, offered)
        self.samples |= {f"trial-{len(self._trials)}/{name}": values for name, values in stamps.items()}
        self._trials = (*self._trials, trial)
        self._bound_samples()
        result.load = LoadFound(self._trials)
        result.errors += self._errors(offered, trial, result)
        try:
            self._next = self._search.send(trial)
        except StopIteration as end:
            self._end(end.value, process)

    def _bound_samples(self) -> None:
        """Without those of the first rates that were not confirmed."""
        missed = (
            place
            for place, trial in enumerate(self._trials)
            if (trial.kind, trial.outcome) == ("at_largest_rate", "missed")
        )
        while sum(values.size for values in self.samples.values()) > _MOST_STAMPED * len(STAMPS):
            place = next(missed, None)
            if place is None:
                return
            for name in STAMPS:
                self.samples.pop(f"trial-{place}/{name}", None)

    def _end_by_budget(self, result: ProcessResult) -> None:
        """With the largest rate so far."""
        self._is_over = True
        result.load = LoadFound(self._trials, largest_met(self._trials), "budget")
        trials = quantity_text.count(len(self._trials), "trial")
        so_far = "" if result.load.largest_rate_per_s else ", none of which met the bound"
        text = f"the budget ended its search for the largest rate after {trials}{so_far}"
        result.warnings = [*result.warnings, Notice("W_BUDGET_IN_LOAD", text)]

    def _end(self, searched: Searched, process: OneProcess) -> None:
        self._is_over, result = True, process.result
        result.load = LoadFound(self._trials, searched.largest_rate_per_s, searched.limited_by)
        if searched.kept_answers:
            raise OtherWork(f"{searched.kept_answers}: its answers are kept from before", "E_KEPT_ANSWERS")
        result.warnings = [*result.warnings, *notices(result.load, self._load)]
        self._ask_loadgen(result.load, process)

    def _ask_loadgen(self, found: LoadFound, process: OneProcess) -> None:
        """Ask LoadGen in its scenario, or below the largest rate.

        That is in each process where it was asked for, else in the contestant's first.
        """
        load, rate, result = self._load, found.largest_rate_per_s, process.result
        check = LoadGenCheck(load, self._materials, self._logs, self._seed, self._limit_s)
        alone = bool(result.errors) and not any(error.has_distance for error in result.errors)
        if not load.searches and load.scenario is not None:
            if alone:
                raise LoadGenFailed(_TOKENS_ALONE)
            loadgen = check.in_scenario(process, load.scenario)
            result.load = msgspec.structs.replace(found, loadgen=loadgen)
            result.errors += check.while_timed(result.in_force)
            result.errors += check.accuracy(process.worker, result.in_force)
            return
        asked = load.scenario == "server" or self._is_first
        here = bool(self._name.framework) and not self._name.version
        why = check.why_not_below(rate, here=here) if asked else "it ran in the contestant's first process"
        why = _TOKENS_ALONE if alone else why
        if why or rate is None:
            result.load = msgspec.structs.replace(found, loadgen_absent=why)
        else:
            result.load = msgspec.structs.replace(found, loadgen=check.below(process.worker, rate))
            result.errors += check.while_timed(result.in_force)

    def _offered(self, process: OneProcess, offered: Offered) -> tuple[LoadTrial, Samples]:
        load = self._load
        self._file.unlink(missing_ok=True)
        is_judged = offered.items == "pool"
        alone = not is_judged or offered.kind == "lone"
        trial = (process if is_judged else process.worker).ask(
            OfferLoad(
                kind=offered.kind,
                requests=offered.requests,
                bound_s=load.bound_s,
                percentile=load.percentile,
                seed=self._seeds.randrange(_MOST_SEED),
                path=str(self._file),
                rate_per_s=offered.rate_per_s,
                at_random=offered.at_random,
                ends_early=offered.ends_early,
                fewest=offered.fewest,
                workers=1 if alone else load.workers,
                largest_batch=1 if alone else load.largest_batch,
                longest_wait_s=load.longest_wait_s,
                items=offered.items,
                give_up_s=self._give_up_s,
                stamps=offered.kind in _STAMPED,
                first_token_s=load.first_token_s,
            ),
            within_s=self._limit_s,
        )
        if is_judged:
            process.meter.leave_out(without_requests_s(trial, 1 if alone else load.workers))
        if not trial.bytes:
            return trial, {}
        stamps = np.frombuffer(process.worker.raw, dtype="<f8").reshape(len(STAMPS), -1)
        return trial, dict(zip(STAMPS, stamps, strict=True))

    @property
    def _give_up_s(self) -> float:
        return _GIVE_UP_S + _GIVE_UP_TRIALS * self._load.trial_s

    def _errors(self, offered: Offered, trial: LoadTrial, result: ProcessResult) -> list[AnswerError]:
        where = f"in a trial of {_rate_text(offered)}"
        if dropped := trial.unanswered - trial.pending:
            of_all = quantity_text.count(trial.requests + trial.unanswered, "request")
            within = f"within {self._give_up_s:g} s after the last was due"
            raise OtherWork(f"{dropped:,} of {of_all} were not answered {within}, {where}", E_DROPPED_REQUESTS)
        if trial.without_answer:
            raise OtherWork(f"a request had no answer {where}: {trial.without_answer}", E_DROPPED_REQUESTS)
        if offered.items != "pool":
            return []
        by_request: dict[tuple[str, str], dict[str, np.ndarray]] = {}
        for key, array in safetensors.read(self._file).items():
            item, number, name = key.split("/", 2)
            by_request.setdefault((item, number), {})[name] = array
        if len(by_request) < trial.checked:
            raise OtherWork(f"not all answers that were kept can be read {where}", E_DROPPED_REQUESTS)
        found: list[AnswerError] = []
        for (item, number), got in by_request.items():
            which = (*IN_TURN, *UNSEEN)[int(item)]
            errors = answers.array_errors(self._materials, got, which, WHEN)
            request = f"request {int(number) + 1} {where}"
            answers.require_right_on(self._materials, got, which, errors, result.in_force, request)
            found += errors
        return [max(found, key=lambda error: error.distance)] if found else []


def notices(found: LoadFound, load: Load) -> list[Notice]:
    trial = found.at_largest_rate
    late_ns = 0.0 if trial is None or trial.times is None else trial.times.issue_lateness_p99_ns
    if not load.searches or late_ns <= _LATE_SHARE * 1e9 * load.least_bound_s:
        return []
    late = quantity_text.duration(late_ns, _FEW_DIGITS_NS)
    text = f"at its largest rate, one request in a hundred was issued {late} late or later, which counts as latency"
    return [Notice("W_LATE_REQUESTS", text)]


def without_requests_s(trial: LoadTrial, workers: int) -> float:
    """Estimate for how long there was nothing to serve in a trial, by the usual time of a call."""
    if trial.times is None:
        return 0.0
    calls = trial.requests / max(trial.mean_batch, 1.0)
    return max(trial.elapsed_s - calls * trial.times.service_p50_ns / 1e9 / workers, 0.0)


def _rate_text(offered: Offered) -> str:
    if offered.rate_per_s is None:
        return quantity_text.count(offered.requests, "request")
    return quantity_text.rate(offered.rate_per_s)
