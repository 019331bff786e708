"""What was learnt is kept as weights, and training starts from such files, or from none that are not the model's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.array_files import safetensors
from fairlap.models.draw import draw_weights
from fairlap.models.registry import find
from fairlap.models.training.reference import BUFFER, STEP, WEIGHT
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.start_weights import start_weights
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.fields.scale import Scale
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.scenarios.learning.race.kept_weights import KeptWeights, require_folder
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.scenarios.process_result import ProcessResult
from msgspec.structs import replace
from small_races import small_plan

SPEC = find("digits").spec
Weights = dict[str, np.ndarray]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    safetensors.write(tmp_path / "learnt.safetensors", dict(draw_weights(SPEC, 7)))
    return tmp_path / "learnt.safetensors"


def requested(file: Path | str, **options: object) -> Work:
    options = {"mode": "train", "models": ("digits",)} | options
    request = RaceRequest(contestants=Contestants("torch"), start_from=str(file), **options)  # type: ignore[arg-type]
    [work] = plan_of(request).works
    return work


def test_contestants_are_handed_the_weights_of_the_file_and_the_label_has_its_hash(file: Path) -> None:
    work, digest = requested(file), hashlib.sha256(file.read_bytes()).hexdigest()
    assert work.start is not None
    assert (work.start.path, work.start.sha256) == (str(file), digest)
    assert f"learnt.safetensors sha256:{digest[:12]}" in work.label
    materials = materials_for(work, 0)
    for name, array in draw_weights(SPEC, 7).items():
        assert np.array_equal(materials.weights[name], array)
    drawn = materials_for(Work("digits", work.batch, "train", training=work.training), 0)
    assert drawn.weights_hash != materials.weights_hash
    assert requested(f"{file}@sha256:{digest}") == work


def without_one(weights: Weights) -> None:
    weights.popitem()


def with_another(weights: Weights) -> None:
    weights["other"] = np.zeros(2, np.float32)


def of_another_shape(weights: Weights) -> None:
    name = next(iter(weights))
    weights[name] = weights[name][:1]


def of_another_type(weights: Weights) -> None:
    name = next(iter(weights))
    weights[name] = weights[name].astype(np.float64)


def not_finite(weights: Weights) -> None:
    name = next(iter(weights))
    weights[name] = np.full_like(weights[name], np.nan)


@pytest.mark.parametrize("spoil", [without_one, with_another, of_another_shape, of_another_type, not_finite])
def test_weights_of_another_model_are_refused(spoil: Callable[[Weights], None], file: Path) -> None:
    weights = dict(draw_weights(SPEC, 7))
    spoil(weights)
    safetensors.write(file, weights)
    with pytest.raises(InvalidRequest) as refused:
        requested(file)
    assert refused.value.code == "E_START_FROM"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("missing.safetensors", {}),
        ("{file}@sha256:0123", {}),
        ("{file}", {"mode": "infer"}),
        ("{file}", {"mode": ("train", "infer")}),
        ("{file}", {"models": ("mlp",)}),
        (__file__, {}),
    ],
)
def test_what_training_cannot_start_from_is_refused(text: str, options: dict[str, object], file: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        requested(text.format(file=file), **options)
    assert refused.value.code == "E_START_FROM"


def test_a_file_that_has_changed_since_is_refused(file: Path) -> None:
    work = requested(file)
    safetensors.write(file, dict(draw_weights(SPEC, 8)))
    with pytest.raises(InvalidRequest) as refused:
        materials_for(work, 0)
    assert refused.value.code == "E_START_FROM"


def plan_to(score: float | None):  # type: ignore[no-untyped-def]
    work = Work("digits", 32, "train", training=SPEC.training)
    return small_plan("torch:compile", work, blocks=2, conditions="controlled", seed=3, to_score=score, most_epochs=5)


def ended(score: float, block: int = 0) -> ProcessResult:
    work = plan_to(0.9).works[0].id
    learning = LearningCurve(0.9, (Evaluation(4, 0.1, 0.99, 0.1), Evaluation(8, 0.2, score, 0.2)))
    return ProcessResult(block, 0, "torch:compile", work, "controlled", learning=learning)


def state(value: float) -> Weights:
    weights: Weights = {WEIGHT + name: np.full_like(array, value) for name, array in draw_weights(SPEC, 0).items()}
    return weights | {BUFFER + "w": np.zeros(1, np.float32), STEP: np.asarray(8, np.float32)}


def offer(kept: KeptWeights, score: float, value: float) -> None:
    process = ended(score)
    assert process.learning is not None
    kept.offer(process, process.learning, state(value))


def test_the_process_that_ended_with_the_best_score_is_kept_and_another_race_starts_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    lines: list[str] = []
    kept = KeptWeights(plan_to(0.9), tmp_path, lines.append)
    for value, score in ((1.0, 0.8), (2.0, 0.95), (3.0, 0.9)):
        offer(kept, score, value)
    file = tmp_path / "digits-batch-32-torch-compile.safetensors"
    assert {float(array.max()) for array in safetensors.read(file).values()} == {2.0}
    assert len(lines) == 2
    named = lines[-1].rpartition(" in ")[2]
    assert start_weights(named, SPEC).path == str(file)


def test_a_resumed_race_keeps_what_was_better_before(tmp_path: Path) -> None:
    offer(KeptWeights(plan_to(0.9), tmp_path), 0.95, 2.0)
    again = KeptWeights(plan_to(0.9), tmp_path, earlier=[ended(0.95)])
    offer(again, 0.9, 3.0)
    [file] = tmp_path.iterdir()
    assert {float(array.max()) for array in safetensors.read(file).values()} == {2.0}
    offer(again, 0.96, 4.0)
    assert {float(array.max()) for array in safetensors.read(file).values()} == {4.0}


def test_each_scale_of_a_work_keeps_its_own_weights(tmp_path: Path) -> None:
    plan = plan_to(0.9)
    works = tuple(replace(plan.works[0], scale=Scale(threads)) for threads in (1, 2))
    kept = KeptWeights(replace(plan, works=works), tmp_path)
    for work in works:
        process = ended(0.9)
        process.work_id = work.id
        assert process.learning is not None
        kept.offer(process, process.learning, state(1.0))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_cannot_be_written_is_a_failure_of_the_race_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = KeptWeights(plan_to(0.9), tmp_path / "file" / "folder")
    offer(kept, 0.9, 1.0)
    assert len(kept.failures) == 1


def test_the_first_weights_make_their_folder(tmp_path: Path) -> None:
    offer(KeptWeights(plan_to(0.9), tmp_path / "a" / "b"), 0.9, 1.0)
    assert len(list((tmp_path / "a" / "b").iterdir())) == 1


def test_a_folder_for_nothing_and_one_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    require_folder(tmp_path / "a" / "b", asked=True)
    require_folder(None, asked=False)
    (tmp_path / "file").touch()
    for asked, folder in ((False, tmp_path), (True, tmp_path / "file"), (True, tmp_path / "file" / "below")):
        with pytest.raises(InvalidRequest) as refused:
            require_folder(folder, asked=asked)
        assert refused.value.code == "E_KEEP_WEIGHTS"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
