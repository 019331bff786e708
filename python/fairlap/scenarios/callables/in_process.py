"""``fairlap.compare``: callables in one process, in randomly ordered blocks, until every comparison is decided.

After each callable it waits until all other threads are idle, so that no callable pays for another's late work.
"""

from __future__ import annotations

import math
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlap import quantity_text
from fairlap.engine.arguments import positive_number, whole_number
from fairlap.engine.timed_calls import name_of, require_body_runs
from fairlap.errors import InvalidRequest, shown
from fairlap.machine.race_lock.lock import one_race
from fairlap.meters.sample_clocks import SampleClocks
from fairlap.scenarios.callables.answers.check import Answers
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import Draw
from fairlap.scenarios.callables.answers.structural import STRUCTURAL, check_structural, warn_of_one_size
from fairlap.scenarios.callables.checked_options import require_baseline, require_fit
from fairlap.scenarios.callables.judging import Ending, Judge, outcome
from fairlap.scenarios.callables.result import CallableRow, InProcessComparison
from fairlap.scenarios.callables.stolen_meanwhile import StolenMeanwhile
from fairlap.scenarios.callables.turns import INTERRUPTED, LONGEST_TURN_S, SHORTEST_TURN_S, Arm, Done, Turns
from fairlap.scenarios.regime import regime_named

MOST_BLOCKS = 10_000
BUDGET_S = 2.0
MARGIN = 0.005
Inputs = Callable[..., Any] | str
_WARM_UP_SHARE = 0.1  # of the budget
_REPEATING_SHARE = 0.0015  # of the budget, for calls whose answers are checked before any is timed
_MOST_SEED = 2**31 - 1
_MOST_BLOCKS_TO_TARGET = 60
_MOST_BLOCKS_UNTIL_DECIDED = 300  # the time of a verdict grows with their square


def compare(
    callables: Mapping[str, Callable[..., object]],
    *,
    done: Done | Mapping[str, Done] | None = None,
    stream: object | None = None,
    baseline: str | None = None,
    budget: float | None = None,
    only_winner: bool = False,
    blocks: int | None = None,
    target: float | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    margin: float = MARGIN,
    alpha: float = 0.05,
    reference: Callable[..., object] | None = None,
    inputs: Inputs | Sequence[Inputs] | None = None,
    any_answers: bool = False,
    alone: bool = False,
    regime: str | None = None,
    wait: bool = True,
    **options: Any,
) -> InProcessComparison:
    """Compare callables by name in this process: whose answers are right, and which of those is faster.

    ``inputs`` draws the arguments of a call: ``inputs(rng, **sizes)`` returns a tuple, a mapping or a single one. New
    ones are drawn for each block. With ``inputs=[draw, "structural"]``, calls on tiny, odd, strided, denormal and other
    inputs are checked before. Without ``inputs`` the callables take no arguments.

    ``reference`` takes the same arguments and says what is right; it is evaluated in float64. Without one, answers are
    compared with those of the first callable. A callable that answers wrong is not ranked. ``any_answers`` compares
    none; nor are answers compared that are another each time, or no arrays, numbers or texts.

    In every block they take turns of one sample each, in an order drawn for that block. Blocks run until every
    comparison is decided, or until another block would not fit into ``budget`` seconds, warm-up included: 2 by
    default. With ``only_winner``, only the fastest is compared with each of the others, which is decided sooner. Two
    callables are equivalent when they are shown to differ by less than ``margin``, a share.

    ``blocks`` runs a fixed number of them instead. ``target`` runs 12 to 60, until every interval is within
    +-``target`` (a share). ``budget`` ends these early too.

    ``seconds`` is the time of each callable in a block: 0.05 with ``blocks`` or ``target``; otherwise 0.005, or more
    for a budget that 300 such blocks would not use up, or where other threads go on for a while after a call.

    Where a callable is slower right after another one, its row has the warning W_CARRY_OVER. ``alone`` measures each
    callable in a block for the whole time at once, after untimed calls for as long, so that nothing carries over.

    ``baseline`` is the callable that the printed sentences compare with; the fastest by default.

    ``done`` waits for what a call returned: one for all, or one for each name. ``stream`` and further options go to
    :func:`fairlap.measure`. With a stream, or where other threads go on after a call, each callable is timed for the
    whole time at once, and the next starts when all other threads are idle. A callable whose work continues
    after its calls return, and which has no ``done``, gets no verdict.

    On a stream, samples that were taken while temperature or power slowed the GPU down are left out, and blocks in
    which launch gaps are in the spans of some callables only. Where the clock of the GPU is known, a difference must
    show in its cycles as well as in time, or it is inconclusive.

    ``regime`` is of a GPU: "burst" rests before each turn, and "sustained" first loads it until its clock is steady.

    Where other programs took cores from threads of the callables there is no verdict (``E_BUSY_MACHINE``), nor where a
    quota stopped them (``E_THROTTLED``).

    While another race uses the same cores, it waits; without ``wait`` it raises ``E_BUSY``.
    """
    arms, in_regime = _arms(callables, done), regime_named(regime, on_stream=stream is not None)
    require_baseline(callables, baseline)
    switches = {"only_winner": only_winner, "any_answers": any_answers, "alone": alone, "wait": wait}
    require_fit(options, alpha=alpha, margin=margin, target=target, seconds=seconds, **switches)
    until_decided = blocks is None and target is None
    most_blocks = _MOST_BLOCKS_UNTIL_DECIDED if until_decided else _MOST_BLOCKS_TO_TARGET
    blocks = most_blocks if blocks is None else whole_number("blocks", blocks, least=1, most=MOST_BLOCKS)
    if budget is not None:
        budget = positive_number("budget", budget)
    budget_s = budget or (BUDGET_S if until_decided else math.inf)
    seed = secrets.randbelow(_MOST_SEED) if seed is None else whole_number("seed", seed, least=0, most=_MOST_SEED)
    turn_s = positive_number("seconds", seconds) if seconds is not None else LONGEST_TURN_S
    if seconds is None and until_decided:
        turn_s = max(SHORTEST_TURN_S, budget_s / (blocks * len(arms)))
    judge = Judge(alpha, margin, until_decided, bool(only_winner))
    warm_up_s = min(LONGEST_TURN_S, _WARM_UP_SHARE * budget_s / len(arms)) if until_decided else math.inf
    fixed = seconds is not None or not until_decided
    longest_s = budget_s if math.isfinite(budget_s) else None
    with one_race(wait=wait, longest_s=longest_s), SampleClocks(str(options.get("clock", "auto"))) as clocks:
        began_s = time.perf_counter()
        answers = _answers(arms, reference, inputs, seed, any_answers=any_answers, budget_s=budget_s)
        turns = Turns(
            arms,
            {"stream": stream, **options},
            turn_s,
            fixed=fixed,
            warm_up_s=warm_up_s,
            answers=answers,
            margin=margin,
            alone=bool(alone),
            clocks=None if stream is None else clocks,
            regime=in_regime,
        )
        turns.take_accusations()
        ending = Ending(judge, target, budget_s, blocks, began_s)
        meanwhile = StolenMeanwhile()
        with meanwhile.watched():
            ended_early = turns.run(random.Random(seed), blocks, lambda: ending.why(arms))
        interrupted = ended_early == INTERRUPTED
        if not interrupted:
            answers.check_last()
        elapsed_s = time.perf_counter() - began_s
    answers.accuse_of_kept_answers()
    turns.take_accusations()
    complete = min(len(arm.medians_ns) for arm in arms)
    if not ended_early and target is not None:
        ended_early = f"stopped after {quantity_text.count(complete, 'block')}, the most, before the target was met"
    if interrupted:
        ended_early = f"interrupted after {quantity_text.count(complete, 'block')}"
        ended_early += "" if until_decided else f" of {blocks}"
    rows = [
        CallableRow.of(arm.name, arm.medians_ns[:complete], (*arm.warnings, *answers.notices[arm.name]))
        for arm in (arms if complete else ())
    ]
    rows.sort(key=lambda row: (row.name in answers.wrong, row.median_ns))
    medians_ns = {row.name: row.median_ns for row in rows}
    comparisons, standing, (why_none, code) = outcome(judge, arms, complete, medians_ns)
    if complete < 2 and turns.on_device.why_none[1] and not interrupted:
        why_none, code = turns.on_device.why_none
    if comparisons and stream is None and (starved := meanwhile.why_not_claimable())[1]:
        comparisons, standing, why_none, code = (), None, meanwhile.why_not_claimed, starved[1]
    if standing is not None:
        rows.sort(key=lambda row: standing.position(row.name))
    return InProcessComparison(
        rows=tuple(rows),
        comparisons=comparisons,
        standing=standing,
        blocks=complete,
        seconds=turns.seconds,
        elapsed_s=elapsed_s,
        seed=seed,
        baseline=baseline or "",
        regime=in_regime.text,
        until_decided=until_decided,
        interrupted=interrupted,
        ended_early=ended_early,
        excluded={arm.name: arm.why_excluded for arm in arms if arm.why_excluded},
        why_no_verdict=why_none,
        no_verdict_code=code,
        answers=answers.result(),
    )


def _arms(callables: Mapping[str, Callable[..., object]], done: Done | Mapping[str, Done] | None) -> list[Arm]:
    if not isinstance(callables, Mapping) or len(callables) < 2:
        raise InvalidRequest('pass at least two callables by name, such as compare({"a": f, "b": g})')
    if strange := [shown(name) for name in callables if not isinstance(name, str)]:
        raise InvalidRequest(f"the names of callables must be strings (got {', '.join(strange)})")
    waits = done if isinstance(done, Mapping) else dict.fromkeys(callables, done)
    if unknown := [shown(name) for name in waits if name not in callables]:
        raise InvalidRequest(f"done= has a name that is not among the callables: {', '.join(unknown)}")
    for name, fn in callables.items():
        require_body_runs(fn, waits.get(name))
    return [Arm(name, fn, waits.get(name)) for name, fn in callables.items()]


def _answers(
    arms: Sequence[Arm],
    reference: Callable[..., object] | None,
    inputs: Inputs | Sequence[Inputs] | None,
    seed: int,
    *,
    any_answers: bool,
    budget_s: float,
) -> Answers:
    """Those of the callables, of which some calls have been checked."""
    draw, structural = _inputs_of(inputs, seed)
    if reference is not None and not callable(reference):
        raise InvalidRequest(f"reference= must be callable, not {shown(reference)}")
    if any_answers and (reference is not None or structural):
        raise InvalidRequest("with any_answers no answer is compared; leave out reference= and structural inputs")
    truth = None if reference is None else Checked(name_of(reference), reference, None)
    found = Answers(
        [Checked(arm.name, arm.fn, arm.done) for arm in arms],
        draw,
        truth,
        wanted=not any_answers,
        repeating_s=_REPEATING_SHARE * min(budget_s, BUDGET_S),
    )
    found.check_first()
    if found.are_compared:
        (check_structural if structural else warn_of_one_size)(found, draw)
    return found


def _inputs_of(inputs: Inputs | Sequence[Inputs] | None, seed: int) -> tuple[Draw, bool]:
    given: list[Any] = [] if inputs is None else list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    functions = [each for each in given if not isinstance(each, str)]
    if unknown := [each for each in given if isinstance(each, str) and each != STRUCTURAL]:
        raise InvalidRequest(f"inputs= has {shown(unknown[0])}; it takes a function that draws, and {STRUCTURAL!r}")
    if len(functions) > 1 or not all(map(callable, functions)):
        raise InvalidRequest("inputs= takes one function that draws the arguments")
    if given and not functions:
        raise InvalidRequest(f"{STRUCTURAL} inputs vary what a function draws; give that function as inputs, too")
    return Draw.of(functions[0] if functions else None, seed), STRUCTURAL in given
