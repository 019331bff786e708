"""``fairlap time --untrusted``: callables of strangers in turns, each in its sandbox, judged by a referee beyond reach.

A round draws inputs, gives the same to every contestant in an order drawn for it, and then draws which answers it
checks. The empty call is one of the contestants; what it takes is the floor.
"""

from __future__ import annotations

import gc
import math
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.cuda.libraries import native_errors_explained
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.machine.files.scratch_folder import remove_abandoned
from fairlap.machine.programs.sandbox import has_seccomp, landlock_version
from fairlap.machine.race_lock.lock import one_race
from fairlap.scenarios.callables.judging import Judge, why_not_compared
from fairlap.scenarios.callables.untrusted.arms import FEWEST_ALONE, Arm
from fairlap.scenarios.callables.untrusted.draws import DrawnSlots, Draws
from fairlap.scenarios.callables.untrusted.floor import Floor
from fairlap.scenarios.callables.untrusted.on_device.device_exchange import PrivateMemory
from fairlap.scenarios.callables.untrusted.on_device.referee_device import RefereeDevice, require_arrays
from fairlap.scenarios.callables.untrusted.process import ContestantProcess, Terms
from fairlap.scenarios.callables.untrusted.referee_code import CallableName, callable_name, imported
from fairlap.scenarios.callables.untrusted.result import UntrustedComparison, UntrustedRow
from fairlap.scenarios.callables.untrusted.truth import Reference
from fairlap.scenarios.callables.untrusted.witness import Witness
from fairlap.verdict.blocks import BlockTable

BUDGET_S = 10.0
MARGIN = 0.005
MOST_BLOCKS = 300  # the time of a verdict grows with their square
_ROUNDS = 3  # in a block
_ROUNDS_TO_CHOOSE = 6  # by the shortest sample: on a busy machine most are disturbed, and look long enough
_BEFORE_SAMPLE = 2  # calls of a round that are not in the sample: one cold, and one alone
_MOST_CALLS = 256  # in a sample
_SAMPLE_NS = 500_000.0  # a ring is about a tenth of it; on a busy machine longer ones are seldom undisturbed
_LONGEST_SAMPLE_NS = 250e6
_MOST_BYTES = 1 << 26  # of inputs, and of answers, in the memory that is shared
_FEWEST_CHECKED = 2  # answers in a round
_FIRST_CALLS = 4  # all of whose answers are checked
_LIMIT_S = 30.0  # or the budget, where that is longer
_SHARE_OF_A_ROUND = 0.02  # of the budget, beyond which samples get no longer
_SEEDS = 2**53  # few enough for JSON, and too many to try while a contestant runs


def compare_untrusted(
    names: Sequence[str],
    *,
    reference: str,
    inputs: str,
    sizes: Mapping[str, int] | None = None,
    budget: float = BUDGET_S,
    blocks: int | None = None,
    calls_per_sample: int | None = None,
    only_winner: bool = False,
    margin: float = MARGIN,
    alpha: float = 0.05,
    seed: int | None = None,
    limit: float | None = None,
    wait: bool = True,
    device: str = "cpu",
    notify: Callable[[str], None] = lambda _: None,
) -> UntrustedComparison:
    """Time callables of files, or of installed modules, that are not trusted, and compare several.

    ``reference`` and ``inputs`` name the user's own callables, which run in this process. It ends when every comparison
    is decided, after ``blocks``, or when ``budget`` seconds are over. ``limit`` is the longest that an import or a
    sample may take, in seconds, the first included: 30, or the budget where that is longer. ``notify`` receives which
    one is waited for. ``device`` is "cpu", or such as "cuda:0", on which arguments and answers then are. Linux with
    Landlock and seccomp.
    """
    if not (landlock_version() and has_seccomp()):
        raise NotAvailable("callables that are not trusted need Linux with Landlock and seccomp", code="E_SANDBOX")
    contestants = [callable_name(each) for each in names]
    if not contestants or len(set(names)) < len(names):
        raise InvalidRequest("name each callable once, and at least one")
    seed = secrets.randbelow(_SEEDS) if seed is None else seed
    draws = Draws(imported(inputs, contestants), sizes or {}, seed)
    known = Reference(imported(reference, contestants), draws.one())
    if device != "cpu":
        require_arrays(known.arguments, "what --inputs returned")
        require_arrays(known.answers, "the answer of the reference")
    judge = Judge(alpha, margin, blocks is None, only_winner)
    remove_abandoned()
    with native_errors_explained(), ExitStack() as opened:
        opened.enter_context(one_race(device, wait=wait, longest_s=budget))
        referee_device = None if device == "cpu" else RefereeDevice(device)
        limit_s = max(budget, _LIMIT_S) if limit is None else limit
        race = _Race(contestants, draws, known, seed, limit_s, budget, opened, referee_device, notify)
        return race.run(judge, MOST_BLOCKS if blocks is None else blocks, calls_per_sample)


class _Race:
    def __init__(
        self,
        contestants: Sequence[CallableName],
        draws: Draws,
        known: Reference,
        seed: int,
        limit_s: float,
        budget_s: float,
        opened: ExitStack,
        device: RefereeDevice | None,
        notify: Callable[[str], None],
    ) -> None:
        self._began_s = time.perf_counter()
        self._budget_s = budget_s
        self._seed = seed
        self._known = known
        self._rng = random.Random(secrets.token_bytes(16))  # orders and checks, which no seed gives away
        largest = max(known.arguments.slot_bytes, known.answers.slot_bytes)
        self._most_calls = max(1, min(_MOST_CALLS, _MOST_BYTES // largest - _BEFORE_SAMPLE))
        slots = self._most_calls + _BEFORE_SAMPLE
        self._device = "cpu" if device is None else device.name
        on_device = None if device is None else PrivateMemory(device, known.arguments, known.answers, slots)
        self._inputs = DrawnSlots(draws, known.arguments, slots, on_device)
        opened.callback(self._inputs.memory.close)
        cpu_s = 4 * (budget_s + limit_s) + 600
        copied = np.empty(0 if on_device else slots * known.answers.slot_bytes // 8, np.uint64)
        witness = Witness()
        opened.callback(witness.end)
        layouts = known.arguments, known.answers
        terms = Terms(*layouts, slots, self._inputs, copied, on_device, limit_s, cpu_s, witness, notify)
        self._limit_s = limit_s
        self._floor = self._opened("the empty call", None, terms, opened)
        self._arms = [self._opened(each.text, each, terms, opened) for each in contestants]
        self._calls = 1

    @staticmethod
    def _opened(text: str, name: CallableName | None, terms: Terms, opened: ExitStack) -> Arm:
        arm = Arm(text, ContestantProcess(name, terms))
        opened.callback(lambda: arm.process.end() if arm.exclusion is None else None)
        return arm

    @property
    def _left(self) -> list[Arm]:
        return [arm for arm in self._arms if arm.exclusion is None]

    def run(self, judge: Judge, most_blocks: int, calls_per_sample: int | None) -> UntrustedComparison:
        ended_early, interrupted = "", False
        looks = frozenset(verdict.possible_looks(most_blocks)) if judge.until_decided else frozenset()
        try:
            with _without_collector():
                self._floor.attempt(partial(self._floor.process.imported, self._limit_s))
                self._require_floor()
                for arm in self._arms:
                    arm.attempt(partial(arm.process.imported, self._limit_s))
                self._choose_calls(calls_per_sample)
                self._require_quiet()
                while self._left and self._blocks < most_blocks:
                    if ended_early := self._why_end(judge, looks):
                        break
                    self._run_block()
                if self._calls > 1:
                    self._require_one_by_one()
                self._require_quiet()
        except KeyboardInterrupt:
            interrupted, ended_early = True, f"interrupted after {quantity_text.count(self._blocks, 'block')}"
        return self._result(judge, ended_early, interrupted)

    @property
    def _blocks(self) -> int:
        return len(self._floor.block_ns)

    def _choose_calls(self, wanted: int | None) -> None:
        """First calls one by one, then samples of twice as many calls until the fastest contestant's is long enough."""
        for _ in range(_FIRST_CALLS):
            self._timed_round(1)
        if wanted is not None:
            if not 1 <= wanted <= self._most_calls:
                raise InvalidRequest(f"calls per sample must be between 1 and {self._most_calls} here (got {wanted})")
            self._calls = wanted
            return
        while self._left and self._calls < self._most_calls:
            rounds, spent_s = list[dict[str, float]](), math.inf
            for _ in range(_ROUNDS_TO_CHOOSE):
                began_s = time.perf_counter()
                rounds.append(self._timed_round(self._calls))
                spent_s = min(spent_s, time.perf_counter() - began_s)
            least_ns = [min(took[arm.name] for took in rounds) for arm in (self._floor, *self._left)]
            net_ns = [each - least_ns[0] for each in least_ns[1:]]
            if not net_ns or min(net_ns) >= _SAMPLE_NS or 2 * max(net_ns) > _LONGEST_SAMPLE_NS:
                return
            if spent_s > self._budget_s * _SHARE_OF_A_ROUND:
                return
            self._calls = min(2 * self._calls, self._most_calls)

    def _timed_round(self, calls: int) -> dict[str, float]:
        """Sample each contestant once, of the first slots, and check some of the answers."""
        drawn = self._inputs.fill(calls)
        took_ns = {}
        for arm in self._in_drawn_order():
            if (took := arm.attempt(partial(arm.process.timed, 0, calls))) is not None:
                took_ns[arm.name] = float(took)
        self._require_floor()
        self._check(drawn, sum(took_ns.values()) / 1e9)
        return took_ns

    def _in_drawn_order(self) -> list[Arm]:
        arms = [self._floor, *self._left]
        self._rng.shuffle(arms)
        return arms

    def _run_block(self) -> None:
        for _ in range(_ROUNDS):
            self._run_round()
        for arm in (self._floor, *self._left):
            arm.end_block()

    def _run_round(self) -> None:
        calls = self._calls
        self._run_turns(lambda arm: partial(arm.run_round, _BEFORE_SAMPLE, calls), calls + _BEFORE_SAMPLE)

    def _run_turns(self, turn: Callable[[Arm], Callable[[], None]], slots: int) -> None:
        """Give each contestant its turn on the same new inputs, in an order drawn for it, and check some answers."""
        drawn = self._inputs.fill(slots)
        began_s = time.perf_counter()
        for arm in self._in_drawn_order():
            arm.attempt(turn(arm))
        self._require_floor()
        self._check(drawn, time.perf_counter() - began_s)

    def _require_floor(self) -> None:
        if self._floor.exclusion is not None:
            raise NotAvailable(f"the empty call failed: {self._floor.exclusion.reason}")

    def _require_one_by_one(self) -> None:
        """Judge by many rounds, which a contestant cannot tell from those before."""
        for _ in range(FEWEST_ALONE - len(self._floor.alone_ns)):
            if not any(arm.is_slow_alone(self._floor) for arm in self._left):
                return
            self._run_turns(lambda arm: arm.run_alone, _BEFORE_SAMPLE)
        for arm in self._left:
            arm.attempt(partial(arm.require_one_by_one, self._floor))

    def _check(self, drawn: Sequence[Any], within_s: float) -> None:
        """Check as many answers as can be computed in the time that was measured, drawn now that all are given."""
        order = self._rng.sample(range(len(drawn)), len(drawn))
        began_s = time.perf_counter()
        for checked, slot in enumerate(order):
            if checked >= _FEWEST_CHECKED and time.perf_counter() - began_s > within_s:
                break
            truth = self._known.truth(drawn[slot])
            for arm in self._left:
                arm.attempt(partial(arm.check, slot, truth))

    def _require_quiet(self) -> None:
        for arm in self._left:
            arm.attempt(arm.process.require_quiet)

    def _why_end(self, judge: Judge, looks: frozenset[int]) -> str:
        done = self._blocks
        after = f"stopped after {quantity_text.count(done, 'block')}: "
        if done in looks and len(self._left) > 1 and judge.is_decided(self._table(self._left)):
            return f"{after}every comparison is decided"
        if done >= 2 and time.perf_counter() - self._began_s > self._budget_s:
            return f"{after}the budget allows no further block"
        return ""

    def _floor_under(self, arms: Sequence[Arm]) -> Floor:
        return Floor.of(self._floor.block_ns, [arm.block_ns for arm in arms])

    def _table(self, arms: Sequence[Arm]) -> BlockTable:
        floor = self._floor_under(arms)
        figures = {arm.name: verdict.Figures("wall_ns", floor.figures(arm.block_ns)) for arm in arms}
        return verdict.block_table(figures, evidence="within one process")

    def _result(self, judge: Judge, ended_early: str, interrupted: bool) -> UntrustedComparison:
        left, blocks = self._left if self._blocks else [], self._blocks
        for arm in (self._floor, *left):
            del arm.block_ns[blocks:]
        floor = self._floor_under(left) if blocks else None
        rows = sorted((_row(arm, floor) for arm in left if floor is not None), key=lambda row: row.median_ns)
        comparisons: tuple[verdict.Comparison, ...] = ()
        standing, (why_none, _) = None, why_not_compared(len(left), blocks)
        if not why_none:
            table = self._table(left)
            comparisons = judge.comparisons(table)
            standing = verdict.standing(table, comparisons, {row.name: row.median_ns for row in rows})
            rows.sort(key=lambda row: standing.position(row.name))
        return UntrustedComparison(
            rows=tuple(rows),
            comparisons=comparisons,
            standing=standing,
            excluded={arm.name: arm.exclusion for arm in self._arms if arm.exclusion is not None},
            floor_ns=floor.ns if floor is not None else None,
            ring_ns=float(np.median(self._floor.alone_ns)) if self._floor.alone_ns else None,
            floor_subtracted=floor is not None and floor.is_subtracted,
            calls_per_sample=self._calls,
            blocks=blocks,
            elapsed_s=time.perf_counter() - self._began_s,
            seed=self._seed,
            device=self._device,
            ended_early=ended_early,
            why_no_verdict=why_none if len(self._arms) > 1 else "",
            interrupted=interrupted,
        )


def _row(arm: Arm, floor: Floor) -> UntrustedRow:
    figures = floor.figures(arm.block_ns)
    warnings = (floor.notice(arm.block_ns),) if floor.is_near(arm.block_ns) else ()
    figure = verdict.contestant_figure(np.log(figures), one_process=True)
    return UntrustedRow(arm.name, tuple(figures), figure, arm.answers_checked, warnings)


@contextmanager
def _without_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
