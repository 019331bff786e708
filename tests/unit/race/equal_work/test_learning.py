"""Training to a score: the same batches for all, scores by the weights alone, and other training is found."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.data.labelled.built_in import labelled_set
from fairlap.errors import InvalidRequest
from fairlap.models.registry import find
from fairlap.models.training.reference import STEP, WEIGHT, Batch
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.training_answers import Diverges, drawn_step_errors, training_errors
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.request.fields.training import AdamW, Sgd, Training
from fairlap.scenarios.learning.race import learning as learning_module
from fairlap.scenarios.learning.race import learning_data
from fairlap.scenarios.learning.race.held_out_answers import score_of_answers
from fairlap.scenarios.learning.race.learning import require_learnable, require_plan
from fairlap.scenarios.learning.training_messages import Epoch, EpochTrained
from machine_marks import needs_package
from msgspec.structs import replace as replaced
from trained_by_reference import BATCH, STEPS, TRAINING, WORK, Batches, Worker, learner, materials_of_few_items, planned

pytestmark = needs_package("sklearn")


@pytest.fixture
def materials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Materials:
    return materials_of_few_items(tmp_path, monkeypatch)


def test_it_trains_until_the_score_is_reached(materials: Materials, tmp_path: Path) -> None:
    learning, worker = learner(materials, tmp_path), Worker(materials)
    errors = []
    while learning.goes_on:
        errors += learning.train_for_an_epoch(worker, 60.0)  # type: ignore[arg-type]
    assert {error.what.partition(" ")[0] for error in errors} == {"weight", "buffer"}
    assert all(error.right for error in errors)
    curve = learning.curve
    assert [each.steps for each in curve.evaluations] == [STEPS * (n + 1) for n in range(len(curve.evaluations))]
    assert curve.reached is curve.evaluations[-1]
    scores, losses = [each.score or 0.0 for each in curve.scored], [each.loss or 0.0 for each in curve.scored]
    assert len(scores) == len(curve.evaluations)
    assert curve.best_score == scores[-1] >= 0.5
    assert all(score < 0.5 for score in scores[:-1])
    assert curve.trained_s == pytest.approx(curve.evaluations[-1].steps * 1e-3)
    assert losses[-1] < losses[0]


def test_the_first_steps_of_an_epoch_are_compared_and_its_times_add_up(
    materials: Materials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parted = Worker(materials), Worker(materials)
    expected = learner(materials, tmp_path)
    expected.train_for_an_epoch(whole, 60.0)  # type: ignore[arg-type]
    monkeypatch.setattr(learning_module, "COMPARED_STEPS", 4)
    learning = learner(replace(materials, _training_checks={}), tmp_path)
    errors = learning.train_for_an_epoch(parted, 60.0)  # type: ignore[arg-type]
    assert {error.what for error in errors} == {"weight after 4 steps of training", "buffer after 4 steps of training"}
    assert all(error.right for error in errors)
    assert b"".join(parted.orders) == b"".join(whole.orders)
    assert len(parted.orders) == 2
    assert learning.curve == expected.curve


def test_an_epoch_of_many_items_is_the_same_training_in_pieces(
    materials: Materials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, in_pieces = Worker(materials), Worker(materials)
    expected, learning = learner(materials, tmp_path, block=1), learner(materials, tmp_path, block=1)
    for _ in range(2):
        expected.train_for_an_epoch(whole, 60.0)  # type: ignore[arg-type]
    monkeypatch.setattr(learning_module, "_MOST_BOUND_BYTES", 5 * BATCH * (64 + 1) * 4 - 1)  # of images and labels
    for _ in range(2):
        learning.train_for_an_epoch(in_pieces, 60.0)  # type: ignore[arg-type]
    assert b"".join(in_pieces.orders) == b"".join(whole.orders)
    assert [len(order) // (8 * BATCH) for order in in_pieces.orders] == [4, 2, 4, 2]
    assert learning.curve == expected.curve
    assert all(np.array_equal(array, expected.state[name]) for name, array in learning.state.items())


def test_where_evaluation_counts_its_time_is_part_of_that_to_the_score(
    materials: Materials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning_module, "COMPARED_STEPS", 4)  # the first epoch has two parts and one evaluation
    learning, plain = learner(materials, tmp_path, count_evaluation=True), learner(materials, tmp_path)
    worker, other = Worker(materials), Worker(materials)
    errors = []
    for _ in range(2):
        errors += learning.train_for_an_epoch(worker, 60.0)  # type: ignore[arg-type]
        plain.train_for_an_epoch(other, 60.0)  # type: ignore[arg-type]
    first, second = learning.curve.evaluations
    assert [first.answered_s, second.answered_s] == pytest.approx([5e-3, 10e-3])
    assert second.trained_s == pytest.approx(plain.curve.trained_s + second.answered_s)
    assert [each.score for each in plain.curve.evaluations] == [first.score, second.score]
    assert [error.when for error in errors if error.what == "logits"] == [f"held-out items, epoch {n}" for n in (1, 2)]
    assert all(error.right for error in errors)


@pytest.mark.slow_but("zeros_like")
@pytest.mark.parametrize(
    "answer",
    [np.zeros_like, lambda each: each[:-1], lambda each: each[::-1].copy(), lambda each: each * np.float32(1.01)],
)
def test_wrong_answers_to_held_out_items_are_found(
    answer: Callable[[Any], Any], materials: Materials, tmp_path: Path
) -> None:
    learning = learner(materials, tmp_path, count_evaluation=True)
    errors = learning.train_for_an_epoch(Worker(materials, answer=answer), 60.0)  # type: ignore[arg-type]
    [wrong] = [error for error in errors if not error.right]
    assert wrong.when == "held-out items, epoch 1"


def test_a_worker_that_knows_nothing_of_evaluation_is_found(materials: Materials, tmp_path: Path) -> None:
    class Silent(Worker):
        def ask(self, epoch: Epoch, *, within_s: float) -> EpochTrained:
            return super().ask(replaced(epoch, held_out=""), within_s=within_s)

    with pytest.raises(OtherWork) as raised:
        learner(materials, tmp_path, count_evaluation=True).train_for_an_epoch(Silent(materials), 60.0)  # type: ignore[arg-type]
    assert raised.value.code == "E_OUTPUT"


def test_a_score_that_is_not_reached_ends_with_the_epochs(materials: Materials, tmp_path: Path) -> None:
    learning, worker = learner(materials, tmp_path, to_score=1.0, most_epochs=2), Worker(materials)
    while learning.goes_on:
        learning.train_for_an_epoch(worker, 60.0)  # type: ignore[arg-type]
    assert len(learning.curve.evaluations) == 2
    assert learning.curve.reached is None


def test_metrics_are_of_the_weights_after_the_last_epoch(materials: Materials, tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="`make test` installs it and runs this")
    named = ("top1", "f1", "perplexity", "roc_auc:logits")
    learning, worker = learner(materials, tmp_path, most_epochs=3, to_score=0.99, metrics=named), Worker(materials)
    while learning.goes_on:
        learning.train_for_an_epoch(worker, 60.0)  # type: ignore[arg-type]
    held = labelled_set("digits")
    weights = {
        name.removeprefix(WEIGHT): np.asarray(array, np.float32).astype(np.float64)
        for name, array in worker.named().items()
        if name.startswith(WEIGHT)
    }
    forward = materials.workload("inputs").implementation_of_reference().forward
    logits = forward(weights, {"image": held.held_inputs["image"].astype(np.float64)})["logits"]
    found, last = learning.scores(), learning.curve.evaluations[-1]
    assert tuple(found) == named
    assert found["top1"].value == last.score
    assert found["perplexity"].value == pytest.approx(np.exp(last.loss or 0.0))
    expected = metrics.f1_score(held.held_labels, logits.argmax(axis=1), average="macro", zero_division=0.0)
    assert found["f1"].value == pytest.approx(expected)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = metrics.roc_auc_score(held.held_labels, shares, multi_class="ovr")
    assert found["roc_auc:logits"].value == pytest.approx(expected)
    assert {(each.items, each.low, each.interval) for each in found.values()} == {(len(held.held_labels), None, "")}
    assert learner(materials, tmp_path).scores() == {}


def test_contestants_of_a_block_take_the_same_batches_and_others_do_not(materials: Materials, tmp_path: Path) -> None:
    workers = [Worker(materials) for _ in range(3)]
    for worker, block in zip(workers, (0, 0, 1), strict=True):
        learning = learner(materials, tmp_path, block)
        for _ in range(2):
            learning.train_for_an_epoch(worker, 60.0)  # type: ignore[arg-type]
    first, same, other = (worker.orders for worker in workers)
    assert first == same
    assert len({*first, *other}) == 4


OTHERS: dict[str, tuple[Training, Batches]] = {
    "learning rate is 2 times": (Training(Sgd(lr=0.1, momentum=0.9)), lambda each: each),
    "without momentum": (Training(Sgd(lr=0.05)), lambda each: each),
    "shuffled labels": (
        TRAINING,
        lambda each: [Batch(b.inputs, np.roll(b.labels, 1)) for b in each if b.labels is not None],
    ),
    "a repeated batch": (TRAINING, lambda each: [each[0], each[0], *each[2:]]),
}


@pytest.mark.slow_but("shuffled", "momentum")
@pytest.mark.parametrize("name", OTHERS)
def test_other_training_is_found_after_the_first_epoch(name: str, materials: Materials, tmp_path: Path) -> None:
    training, batches = OTHERS[name]
    errors = learner(materials, tmp_path).train_for_an_epoch(Worker(materials, training, batches), 60.0)  # type: ignore[arg-type]
    assert not all(error.right for error in errors)
    assert any(name in error.why for error in errors) or name in ("shuffled labels", "a repeated batch")


def test_steps_that_are_left_out_and_weights_that_are_not_finite_are_found(
    materials: Materials, tmp_path: Path
) -> None:
    short = Worker(materials, batches=lambda each: each[:-1])
    with pytest.raises(OtherWork, match="5 steps"):
        learner(materials, tmp_path).train_for_an_epoch(short, 60.0)  # type: ignore[arg-type]
    diverging = Worker(materials, Training(Sgd(lr=1e6)))
    with pytest.raises(OtherWork, match="not finite"):
        learner(materials, tmp_path).train_for_an_epoch(diverging, 60.0)  # type: ignore[arg-type]


def test_what_cannot_be_learnt_is_refused() -> None:
    digits = find("digits")
    data, spec = learning_data.data_to_learn(digits, "", 1.0, lambda _: None)
    whole = replaced(WORK, train_on=data, batch=1438)
    require_learnable(whole, spec)
    codes = {"mode": "E_TO_SCORE", "train_on": "E_TO_SCORE", "batch": "E_DATA"}
    for name, value in {"mode": "infer", "train_on": None, "batch": 1439}.items():
        with pytest.raises(InvalidRequest) as raised:
            require_learnable(replaced(whole, **{name: value}), spec)
        assert raised.value.code == codes[name]
    with pytest.raises(InvalidRequest) as raised:
        learning_data.data_to_learn(find("mlp"), "", 1.0, lambda _: None)
    assert raised.value.code == "E_TO_SCORE"


@pytest.mark.parametrize(("to_score", "most_epochs"), [(5.0, 3), (0.0, 3), (0.9, 0)])
def test_an_edited_plan_is_refused(to_score: float, most_epochs: int, materials: Materials) -> None:
    require_plan(planned(), [materials])
    with pytest.raises(InvalidRequest):
        require_plan(planned(to_score, most_epochs), [materials])


@pytest.mark.parametrize("metric", ["mse", "r2", "bleu", "map", "top1:other", "top3"])
def test_a_metric_that_does_not_fit_what_is_learnt_is_refused(metric: str, materials: Materials) -> None:
    require_plan(planned(metrics=("top1", "top5")), [materials])
    with pytest.raises(InvalidRequest) as refused:
        require_plan(planned(metrics=("top1", metric)), [materials])
    assert refused.value.code == "E_METRIC"


def test_a_plan_whose_work_has_an_optimizer_in_another_mode_is_refused(tmp_path: Path) -> None:
    plan = planned()
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    edited = (tmp_path / "plan.json").read_text().replace('"train"', '"infer"')
    (tmp_path / "plan.json").write_text(edited)
    with pytest.raises(InvalidRequest):
        load_plan(tmp_path / "plan.json")


def test_a_step_that_diverges_in_float32_is_not_compared(materials: Materials) -> None:
    huge = {WEIGHT + name: np.full_like(array, 1e30) for name, array in materials.weights.items()}
    assert drawn_step_errors(materials, {}, {**huge, STEP: np.asarray(0.0)}, "inputs", "timed call") == []


def test_training_that_diverges_is_reported_without_warnings_of_numpy(materials: Materials, tmp_path: Path) -> None:
    exploding = Training(AdamW(lr=1e30))
    other = materials_for(replaced(WORK, training=exploding), 0)
    state = {WEIGHT + name: np.full_like(array, 1e30) for name, array in materials.weights.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Diverges):
            training_errors(other, state, "inputs", "before")
        with pytest.raises(OtherWork):
            learner(other, tmp_path).train_for_an_epoch(Worker(materials, exploding), 60.0)  # type: ignore[arg-type]


def test_the_data_have_the_inputs_of_the_model() -> None:
    assert set(labelled_set("digits").inputs) == {tensor.name for tensor in find("digits").spec.inputs}


def test_the_score_of_classes_is_the_share_of_right_answers() -> None:
    outputs = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
    assert score_of_answers(outputs, np.array([1, 0, 0], np.int32)) == pytest.approx(2 / 3)


def test_the_score_of_frames_is_one_less_the_errors_for_each_character() -> None:
    pytest.importorskip("jiwer", reason="`make test` installs it and runs this")
    spelt, labels = ["_aab_b", "ca__c_"], np.array([[1, 2, 2, 0], [3, 1, 0, 0]], np.int32)  # abb, and cac for ca
    outputs = np.array([np.eye(4)[["_abc".index(each) for each in row]] for row in spelt])
    assert score_of_answers(outputs, labels, "ctc") == pytest.approx(1 - 1 / 5)
    assert score_of_answers(np.eye(4)[[[3, 0, 3, 0, 3, 0]] * 2], labels, "ctc") == pytest.approx(1 - (3 + 2) / 5)


def test_the_score_of_values_is_r_squared() -> None:
    labels = np.array([[1.0], [2.0], [3.0]], np.float32)
    assert score_of_answers(labels.astype(np.float64), labels) == 1.0
    assert score_of_answers(np.full((3, 1), 2.0), labels) == 0.0
    assert score_of_answers(np.array([[1.0], [2.0], [2.0]]), labels) == pytest.approx(0.5)
    assert score_of_answers(np.full((3, 1), 9.0), labels) < 0
