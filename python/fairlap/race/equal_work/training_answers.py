"""Equal training: the state after some steps against the reference's, and drawn timed steps from the state they found.

An array is right if it is as near to the float64 one as rounding explains. What is wrong is named, where another
training of the reference ends at the same place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError
from fairlap.models.arrays import Arrays, under
from fairlap.models.rank_parts import RANK_STATE
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.exercise import Exercise
from fairlap.models.training.mistakes import mistake_of_ranks
from fairlap.models.training.reference import LOSS
from fairlap.race.equal_work.materials import Materials
from fairlap.scenarios.process_result import AnswerError

Array = npt.NDArray[Any]

AFTER_TRAINING = " of training"
FIRST_EPOCH = "first epoch"
"""``AnswerError.when`` of the state after the first steps on real data."""


class Diverges(FairlapError):
    """No contestant could train with these settings."""

    code = "E_DIVERGES"


def training_errors(materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
    """Compare steps; raise Diverges where the reference itself leaves the numbers of float32 within them."""
    check = materials.training_check(which)
    errors = state_errors(check, got, when)
    if not all(error.right for error in errors) and not check.exercise.stays_in_float32():
        raise Diverges(
            f"training with {check.exercise.training.text} diverges in any framework: the reference leaves the numbers "
            f"of float32 within {quantity_text.count(len(check.exercise.batches), 'step')}; lower the learning rate"
        )
    return errors


def drawn_step_errors(materials: Materials, got: Arrays, before: Arrays, which: str, when: str) -> list[AnswerError]:
    return step_errors(materials.drawn_step(which, before), got, when)


def step_errors(exercise: Exercise, got: Arrays, when: str) -> list[AnswerError]:
    """None for a step that leaves the numbers that float32 has: training with these settings diverges."""
    return state_errors(TrainingCheck(exercise), got, when) if exercise.stays_in_float32() else []


def first_epoch_errors(check: TrainingCheck, got: Arrays) -> list[AnswerError]:
    return state_errors(check, got, FIRST_EPOCH)


def lost_sums(errors: Iterable[AnswerError]) -> list[Notice]:
    """Of a contestant that is right within the wider bounds for libraries that add up in bfloat16."""
    why = next((error.why for error in errors if error.right and error.why), "")
    return [Notice("W_TRAINING_SUMS", why)] if why else []


def state_errors(check: TrainingCheck, got: Arrays, when: str) -> list[AnswerError]:
    """Judge the loss, the weights, and each thing that the optimizer keeps.

    An error is the distance of all its arrays together, and whether each of them is right. Of ranks, those of rank 0
    are returned, and of others those that are wrong: all of them have to arrive at the same place.
    """
    ranks = states_of_ranks(got, check.exercise.ranks)
    judged = [check.judged(state) for state in ranks]
    why_all = mistake_of_ranks([why for _, why in judged])
    errors: list[AnswerError] = []
    for number, (state, (times_allowed, why)) in enumerate(zip(ranks, judged, strict=True)):
        of_rank = when if number == 0 else f"{when}, rank {number}"
        found = _errors_of_state(check, state, of_rank, times_allowed, why_all or why)
        errors += found if number == 0 else [error for error in found if not error.right]
    return errors


def states_of_ranks(got: Arrays, ranks: int) -> list[dict[str, Array]]:
    """Each with the loss, which is that of all together."""
    own = [{name: array for name, array in got.items() if not name.startswith(RANK_STATE)}]
    for number in range(1, ranks):
        state = under(f"{RANK_STATE}{number}/", got)
        own.append({**state, **({LOSS: got[LOSS]} if LOSS in got else {})})
    return own


@np.errstate(over="ignore", invalid="ignore")  # training may diverge
def _errors_of_state(
    check: TrainingCheck, got: Arrays, when: str, times_allowed: Mapping[str, float], why: str
) -> list[AnswerError]:
    found, exercise = check.found, check.exercise
    kinds: dict[str, list[str]] = {}
    for name in found.expected:
        kinds.setdefault(name.partition("/")[0], []).append(name)
    start = exercise.start.named()
    return [
        _error(
            f"{kind} after {quantity_text.count(len(exercise.batches), 'step')}{AFTER_TRAINING}",
            when,
            [got.get(name) for name in names],
            [found.expected[name] for name in names],
            [start.get(name, np.zeros(())) for name in names],
            right=all(times_allowed[name] <= 1 for name in names),
            why=why,
        )
        for kind, names in kinds.items()
    ]


def _error(
    what: str,
    when: str,
    got: Sequence[Array | None],
    expected: Sequence[Array],
    start: Sequence[Array],
    *,
    right: bool,
    why: str,
) -> AnswerError:
    """Measure an error relative to how far the steps moved the arrays, and that of a loss below 1 relative to 1."""
    moved = _norm(end - begin for end, begin in zip(expected, start, strict=True))
    if what.startswith(LOSS):
        moved = max(moved, 1.0)
    relative = worst = math.nan
    if all(one is not None and one.shape == other.shape for one, other in zip(got, expected, strict=True)):
        differences = [one - other for one, other in zip(got, expected, strict=True) if one is not None]
        relative = _norm(differences) / max(moved, 1e-300)
        worst = max(float(np.abs(each).max(initial=0.0)) for each in differences)
    return AnswerError(what, when, None, worst, relative, right, why)


def _norm(arrays: Iterable[Array]) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return math.sqrt(sum(float(np.sum(np.square(each, dtype=np.float64))) for each in arrays))
