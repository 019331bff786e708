"""Fed steps of training: labels are checked before a race, and the state after the steps against the reference's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.registry import find
from fairlap.models.spec import LABELS
from fairlap.models.training.reference import Batch
from fairlap.race.equal_work.fed_check import require_data
from fairlap.race.equal_work.fed_steps import FedSteps
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Mode, Work

BATCH = 4
WORK = Work("digits", BATCH, "train", training=Training(Sgd(lr=0.05, momentum=0.9)))
FedBatches = list[dict[str, Any]]


def folder_with(folder: Path, labels: Any, images: int = 10) -> Path:
    np.save(folder / "image.npy", np.zeros((images, 1, 8, 8), np.float32))
    if labels is not None:
        np.save(folder / "labels.npy", labels)
    return folder


def required(path: Path, mode: Mode = "train") -> str:
    spec = find("digits").spec
    work = WORK if mode == "train" else Work("digits", BATCH, mode)
    return require_data(str(path), [(work, spec)])


GOOD = np.arange(10, dtype=np.int32)


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (None, "lacks labels.npy"),
        (GOOD[:9], "image 10, labels 9"),
        (GOOD.astype(np.int64), r"labels.npy has int64 .* takes int32 of shape \[N\]"),
        (GOOD.astype(np.float32), "labels.npy has float32"),
        (np.eye(10, dtype=np.int32), r"labels.npy has int32 of shape \[10, 10\]"),
        (GOOD + 1, "values from 1 to 10; labels of digits takes 0 to 9"),
        (GOOD - 1, "values from -1 to 8"),
    ],
)
def test_labels_that_do_not_fit_are_refused_in_one_line(tmp_path: Path, labels: Any, values: str) -> None:
    with pytest.raises(InvalidRequest, match=values) as refused:
        required(folder_with(tmp_path, labels))
    assert refused.value.code == "E_DATA"
    assert "\n" not in str(refused.value)


def test_training_needs_a_folder_and_inference_takes_the_same_one(tmp_path: Path) -> None:
    folder_with(tmp_path, GOOD)
    assert required(tmp_path) == required(tmp_path, "infer") == str(tmp_path)
    assert required(tmp_path / "image.npy", "infer") == str(tmp_path / "image.npy")
    with pytest.raises(InvalidRequest, match=r"2 files.* image.npy, labels.npy"):
        required(tmp_path / "image.npy")


@pytest.fixture
def materials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Materials:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    return materials_for(WORK, 0)


def drawn(scale: float = 1.0) -> FedBatches:
    rng = np.random.default_rng(5)
    return [
        {
            "image": np.float32(scale) * rng.standard_normal((BATCH, 1, 8, 8), dtype=np.float32),
            LABELS: rng.integers(0, 10, BATCH).astype(np.int32),
        }
        for _ in range(3)
    ]


def steps_on(materials: Materials, batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a contestant that computes in float32."""
    pairs = [Batch({"image": each["image"]}, each[LABELS]) for each in batches]
    return materials.exercise_on(pairs).taken(np.float32)


def shuffled(batches: FedBatches) -> FedBatches:
    return [{**each, LABELS: np.roll(each[LABELS], 1)} for each in batches]


def late(batches: FedBatches) -> FedBatches:
    return [batches[0], *({**now, LABELS: before[LABELS]} for before, now in pairwise(batches))]


def test_steps_on_what_was_fed_are_right_and_the_reference_takes_them_once(
    materials: Materials, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed, steps = drawn(), FedSteps("synthetic")
    got = steps_on(materials, fed)
    asked: list[int] = []
    exercise_on = Materials.exercise_on

    def counted(*arguments: Any) -> Any:
        asked.append(1)
        return exercise_on(*arguments)

    monkeypatch.setattr(Materials, "exercise_on", counted)
    for _ in range(2):
        errors = steps.first_errors(materials, fed, got, "fed, before")
        assert {error.what.partition(" ")[0] for error in errors} == {"loss", "weight", "buffer"}
        assert all(error.right for error in errors)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (shuffled, ""),
        (late, "labels of the batch before"),
        (lambda batches: [batches[0]] * 3, "repeats a batch"),
        (lambda batches: batches[:2], "one step too few"),
    ],
)
def test_steps_on_other_batches_or_labels_are_wrong(
    materials: Materials, other: Callable[[FedBatches], FedBatches], why: str
) -> None:
    fed = drawn()
    errors = FedSteps("synthetic").first_errors(materials, fed, steps_on(materials, other(fed)), "fed, before")
    wrong = [error for error in errors if not error.right]
    assert {error.what.partition(" ")[0] for error in wrong} >= {"weight", "buffer"}
    assert all(why in error.why for error in wrong)


def test_a_later_step_is_compared_with_one_from_the_state_before_it(materials: Materials) -> None:
    fed, steps = drawn(), FedSteps("synthetic")
    before = {**steps_on(materials, fed[:2]), "step": np.array(2.0)}
    right = steps_on(materials, fed)
    assert all(error.right for error in steps.later_errors(materials, fed[2], before, right, "fed, after"))
    unmoved = {**right, **{name: before[name] for name in right if name != "loss"}}
    errors = steps.later_errors(materials, fed[2], before, unmoved, "fed, after")
    assert {error.why for error in errors if not error.right} == {"it does not train at all"}


def test_data_on_which_the_reference_itself_overflows_are_to_blame(materials: Materials) -> None:
    fed = drawn(1e30)
    with pytest.raises(InvalidRequest, match="mine has numbers") as blamed:
        FedSteps("mine").first_errors(materials, fed, steps_on(materials, fed), "fed, before")
    assert blamed.value.code == "E_DATA"
