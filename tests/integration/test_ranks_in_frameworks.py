"""The real frameworks share steps of training among processes, and each of these ends where one process would.

Every rank prepares the adapter directly, as a worker does, and takes its part of each batch. The float64 reference
takes the whole batches.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.reference import LOSS
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.request.names import contestant_named
from fairlap.request.work import Mode, Work
from machine_marks import needs_package, needs_proc
from one_block import processes_of_one_block
from ranks_of_training import answer_of_last_rank, ends_of_ranks, exercise_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_package("sklearn")]

CONTESTANTS = ("torch", "torch:fsdp", "jax", "tensorflow", "tensorflow:graph", "tensorflow:xla", "mpi")
BATCH = 16  # of all ranks together
ADAM = Training(AdamW(lr=0.01, decay=0.1), Schedule("cosine", warmup=2, steps=20))


@functools.cache
def check_of(model: str, steps: int, training: Training | None = None) -> TrainingCheck:
    return TrainingCheck(exercise_of(model, steps, BATCH, training))


def skip_unless_installed(contestant: str) -> None:
    if not is_importable(framework_named(contestant_named(contestant).framework)):
        pytest.skip(f"{contestant} is not installed here; `make test` installs it and runs this")


@pytest.mark.parametrize("contestant", CONTESTANTS)
@pytest.mark.parametrize(
    ("model", "steps"),
    [
        ("digits", 20),
        ("characters", 5),
        pytest.param("digits", 5, marks=pytest.mark.thorough),
        pytest.param("characters", 20, marks=pytest.mark.thorough),
    ],
)
def test_two_ranks_end_where_one_process_does(contestant: str, model: str, steps: int, tmp_path: Path) -> None:
    skip_unless_installed(contestant)
    check = check_of(model, steps)
    ends = ends_of_ranks(contestant, check.exercise, 2, tmp_path)
    for number, end in enumerate(ends):
        apart, why = check.judged(end)
        assert max(apart.values()) <= 1, (number, why, apart)
    one, other = ends
    assert all(np.array_equal(one[name], other[name]) for name in one if name != LOSS)


@pytest.mark.parametrize("contestant", CONTESTANTS)
def test_ranks_go_on_from_a_state_that_was_read(contestant: str, tmp_path: Path) -> None:
    skip_unless_installed(contestant)
    check = check_of("digits", 6, ADAM)
    for end in ends_of_ranks(contestant, check.exercise, 2, tmp_path, goes_on=True):
        apart, why = check.judged(end)
        assert max(apart.values()) <= 1, (why, apart)


@pytest.mark.parametrize("contestant", ["jax", "tensorflow:graph", "mpi"])
def test_one_rank_takes_the_steps_of_a_single_process(contestant: str, tmp_path: Path) -> None:
    skip_unless_installed(contestant)
    check = check_of("digits", 5)
    [end] = ends_of_ranks(contestant, check.exercise, 1, tmp_path)
    apart, why = check.judged(end)
    assert max(apart.values()) <= 1, (why, apart)


@pytest.mark.parametrize("contestant", ["jax", "mpi"])
def test_ranks_that_exchange_nothing_end_elsewhere(contestant: str, tmp_path: Path) -> None:
    """So that the tests above can fail."""
    skip_unless_installed(contestant)
    check = check_of("digits", 5)
    for end in ends_of_ranks(contestant, check.exercise, 2, tmp_path, exchange=False):
        apart, _ = check.judged(end)
        assert max(apart.values()) > 1


@pytest.mark.parametrize("contestant", ["jax", "tensorflow:graph", "mpi"])
def test_a_rank_answers_its_part_alone(contestant: str, tmp_path: Path) -> None:
    """No other rank is there, so that any exchange would wait for ever."""
    skip_unless_installed(contestant)
    asked = exercise_of("digits", 1, BATCH)
    half = {name: array[BATCH // 2 :] for name, array in asked.batches[0].inputs.items()}
    weights = {name: array.astype(np.float64) for name, array in asked.start.weights.items()}
    expected = asked.forward(weights, half)
    answer = answer_of_last_rank(contestant, asked, 2, tmp_path)
    assert answer.keys() == expected.keys()
    assert all(np.allclose(answer[name], expected[name], rtol=1e-4, atol=1e-5) for name in expected)


@needs_proc
@pytest.mark.parametrize("contestant", ["jax", "tensorflow:graph", "mpi"])
@pytest.mark.parametrize("mode", ["train", "infer"])
def test_conductors_run_their_ranks(contestant: str, mode: Mode) -> None:
    skip_unless_installed(contestant)
    training = Training(Sgd(lr=0.01, momentum=0.9)) if mode == "train" else None
    work = Work("digits", 8, mode, training=training, scale=Scale(1, 2))
    result = processes_of_one_block(contestant, work, seconds=0.2)[contestant]
    assert (result.outcome, result.message) == ("finished", "")
    assert {error.when for error in result.errors} == {"before", "changed inputs", "after", "timed call"}
    assert "2 ranks" in result.in_force["ranks"]
    assert result.in_force["threads"] == "1"
    assert result.ranks is not None
    assert len(result.ranks.memory) == 2
    if mode == "train":
        assert not result.ranks.stepped.why
        assert all(len(turns) == len(result.ranks.stepped.together_ns) for turns in result.ranks.stepped.alone_ns)
