"""Scoring takes no longer than training, for all contestants alike, and the time to the score stays the same."""

from __future__ import annotations

from math import ceil, log2
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.race.equal_work.materials import Materials
from fairlap.scenarios.learning.race import held_out_answers
from fairlap.scenarios.learning.race import learning as learning_module
from fairlap.scenarios.learning.race.checkpoints import Checkpoints
from fairlap.scenarios.learning.race.learning import Learner
from fairlap.scenarios.learning.race.scoring_pace import MOST_KEPT, MOST_KEPT_BYTES, ScoringPace, ScoringPaces
from fairlap.scenarios.learning.race.training_run import TrainingRun
from fairlap.scenarios.learning.training_messages import LearningCurve
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_package
from trained_by_reference import WORK, Worker, learner, materials_of_few_items, planned


def paced(*epochs: tuple[float, float], state_bytes: int = 1) -> ScoringPace:
    """``epochs`` are the seconds of training and of scoring of the second epoch of each contestant."""
    pace = ScoringPace()
    for trained_s, scored_s in epochs:
        pace.note(1, 1e-3, 1e3, state_bytes)  # the first one says nothing
        pace.note(2, trained_s, scored_s, state_bytes)
    return pace


@pytest.mark.parametrize(
    ("epochs", "every"),
    [
        (((1.0, 0.2), (0.3, 0.2)), 1),
        (((0.1, 0.2), (0.3, 0.2)), 1),  # of both together
        (((0.1, 0.25), (0.1, 0.25)), 3),
        (((0.1, 0.2), (0.1, 0.2)), 2),
        (((0.0, 0.2),), MOST_KEPT),
        ((), 1),
    ],
)
def test_so_many_epochs_are_trained_for_each_score_that_scoring_takes_no_longer(
    epochs: tuple[tuple[float, float], ...], every: int
) -> None:
    pace = paced(*epochs)
    assert [pace.every(epoch) for epoch in (1, 2, 3, 4)] == [1, 1, every, every]
    if 1 < every < MOST_KEPT:
        trained_s, scored_s = (sum(each) for each in zip(*epochs, strict=True))
        assert scored_s <= every * trained_s


def test_what_was_decided_stays_for_all_contestants_of_a_work() -> None:
    paces = ScoringPaces()
    paces.of("a").note(2, 0.1, 0.4, 1)
    assert paces.of("a").every(3) == 4
    paces.of("a").note(3, 9.0, 0.1, 1)
    assert (paces.of("a").every(3), paces.of("a").every(2), paces.of("b").every(3)) == (4, 1, 1)


@pytest.mark.parametrize(("share", "every"), [(2, 2), (10, 8), (0.5, 1)])
def test_states_that_wait_to_be_scored_are_bounded(share: float, every: int) -> None:
    assert paced((1.0, 8.0), state_bytes=int(MOST_KEPT_BYTES / share)).every(3) == every


@pytest.fixture
def materials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Materials:
    return materials_of_few_items(tmp_path, monkeypatch)


def trained(learning: Learner, materials: Materials, epochs: int = 99) -> Learner:
    worker = Worker(materials)
    while learning.goes_on and epochs:
        learning.train_for_an_epoch(worker, 60.0)  # type: ignore[arg-type]
        epochs -= 1
    return learning


def scores(curve: LearningCurve) -> list[float | None]:
    return [each.score for each in curve.evaluations]


@pytest.mark.slow_but("3-0.7")
@needs_package("sklearn")
@pytest.mark.parametrize("to_score", [0.7, 0.87])
@pytest.mark.parametrize("every", [3, 4, 32])
def test_the_score_is_reached_in_the_same_epoch_as_if_each_were_scored(
    to_score: float, every: int, materials: Materials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    each_one = trained(learner(materials, tmp_path, to_score=to_score), materials)
    count = len(each_one.curve.evaluations)
    assert 4 < count < 20
    answered = held_out_answers.held_out_answers
    asked: list[int] = []

    def counted(*given: Any) -> Any:
        asked.append(given[-1])
        return answered(*given)

    monkeypatch.setattr(learning_module, "held_out_answers", counted)
    seldom = trained(learner(materials, tmp_path, to_score=to_score, every=every), materials)
    assert len(asked) <= 2 + ceil((count - 2) / every) + ceil(log2(every))
    assert asked[:3] == [1, 2, min(2 + every, 20)]
    assert seldom.curve.scored_every == every
    assert seldom.curve.reached == seldom.curve.evaluations[-1] == each_one.curve.reached
    assert [each.trained_s for each in seldom.curve.evaluations] == [
        each.trained_s for each in each_one.curve.evaluations
    ]
    pairs = zip(scores(seldom.curve), scores(each_one.curve), strict=True)
    assert {a for a, b in pairs if a != b} == {None}
    assert all(np.array_equal(array, each_one.state[name]) for name, array in seldom.state.items())
    assert seldom.is_scored


@pytest.mark.slow
@needs_package("sklearn")
def test_a_score_that_is_lost_again_before_the_next_one_is_not_seen(materials: Materials, tmp_path: Path) -> None:
    each_one = scores(trained(learner(materials, tmp_path, to_score=0.9), materials).curve)
    reached = [epoch for epoch, score in enumerate(each_one, start=1) if score is not None and score >= 0.62]
    assert reached[:3] == [4, 6, 7]
    seldom = trained(learner(materials, tmp_path, to_score=0.62, every=3), materials).curve
    assert [epoch for epoch, score in enumerate(scores(seldom), start=1) if score is not None] == [1, 2, 5, 6]
    assert seldom.reached == seldom.evaluations[-1]


@needs_package("sklearn")
def test_the_last_epoch_is_scored_also_where_the_score_is_not_reached(materials: Materials, tmp_path: Path) -> None:
    found = scores(trained(learner(materials, tmp_path, to_score=1.0, most_epochs=5, every=9), materials).curve)
    assert [score is not None for score in found] == [True, True, False, False, True]


@pytest.mark.slow
@needs_package("sklearn")
def test_training_that_the_budget_ends_is_scored_where_it_ended(materials: Materials, tmp_path: Path) -> None:
    reached = trained(learner(materials, tmp_path, to_score=0.7), materials).curve
    epochs = len(reached.evaluations) + 1
    short = trained(learner(materials, tmp_path, to_score=0.7, every=32), materials, epochs)
    assert (short.goes_on, short.is_scored) == (True, False)
    short.score_last()
    assert (short.goes_on, short.curve.reached) == (False, reached.reached)
    early = trained(learner(materials, tmp_path, to_score=0.7, every=32), materials, epochs=3)
    early.score_last()
    early.score_last()
    assert (early.goes_on, len(early.curve.scored), early.curve.reached) == (True, 3, None)


@needs_package("sklearn")
def test_where_evaluation_counts_every_epoch_is_scored(materials: Materials, tmp_path: Path) -> None:
    counting = learner(materials, tmp_path, every=3, to_score=1.0, most_epochs=4, count_evaluation=True)
    learning = trained(counting, materials)
    assert None not in scores(learning.curve)
    assert learning.curve.scored_every == 1


@needs_package("sklearn")
def test_a_checkpoint_is_of_weights_that_were_scored(materials: Materials, tmp_path: Path) -> None:
    """So training goes on from what is known, and takes the same epochs."""
    plan = planned(to_score=1.0, most_epochs=20)
    written: list[int] = []
    shown: list[int] = []
    checkpoints = SimpleNamespace(
        find=lambda *_: None, write=lambda result, *_: written.append(len(result.learning.evaluations))
    )
    paces = ScoringPaces()
    bench = SimpleNamespace(
        kept=lambda kind, make: {ScoringPaces: paces, Checkpoints: checkpoints}.get(kind) or make(),
        sensed=SimpleNamespace(idle=()),
        goes_on=lambda result, *_: shown.append(len(result.learning.evaluations)),
    )
    paces.of(WORK.id).note(2, 1.0, 3.0, 1)
    assert paces.of(WORK.id).every(3) == 3
    run = TrainingRun(plan, plan.blocks[0], materials, tmp_path, plan.contestants[0])
    result = ProcessResult(0, 0, "torch", WORK.id, "controlled", "finished")
    worker = Worker(materials)
    process: Any = SimpleNamespace(result=result, bench=bench, worker=worker, ask=worker.ask)
    run.begin(process)
    for _ in range(8):
        run.step(process)
    assert written == [1, 2, 5, 8]
    assert shown == list(range(1, 9))
