"""The data of works that are trained to a score: what the plan holds of them, and that they stay the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.registry import find
from fairlap.models.spec import Spec
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.race.resume import require_same_sources
from fairlap.request.fields.data.training_data import ItemSizes, TrainingData
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from fairlap.scenarios.learning.race.learning_data import data_to_learn, labelled, require_same_data
from small_races import small_plan

ROWS = "".join(f"{number / 7},{number % 5},{'red' if number % 3 else 'blue'}\n" for number in range(60))


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "pets.csv"
    path.write_text("height,legs,colour\n" + ROWS)
    return path


def chosen(model: str, text: object, fraction: float = 1.0) -> tuple[TrainingData, Spec]:
    return data_to_learn(find(model), str(text), fraction, lambda _: None)


def work_on(data: TrainingData, model: str = "tabular", batch: int = 8) -> Work:
    return Work(model, batch, "train", training=Training(Sgd(lr=0.1)), train_on=data)


def refused(code: str, *arguments: Any, by: Any = chosen) -> str:
    with pytest.raises(InvalidRequest) as raised:
        by(*arguments)
    assert raised.value.code == code
    assert len(str(raised.value).splitlines()) == 1
    return str(raised.value)


def test_a_plan_holds_where_the_data_are_and_their_hash_and_sizes(pets: Path) -> None:
    data, spec = chosen("tabular", f"{pets}:colour", 0.25)
    assert (data.path, data.column, data.fraction) == (str(pets), "colour", 0.25)
    assert data.sizes == ItemSizes((2,), 2)
    assert len(data.hash) == 64
    found = labelled(work_on(data), spec)
    assert found.inputs["features"].shape == (12, 2)
    assert found.classes == ("blue", "red")


def test_a_model_learns_its_own_set_unless_another_is_named() -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    assert chosen("tabular", "")[0].text == "breast_cancer"
    data, spec = chosen("tabular", "diabetes")
    assert (data.sizes, spec.loss) == (ItemSizes((10,), None), "square_error")


def test_works_on_other_data_are_other_works(pets: Path) -> None:
    whole, part = (work_on(chosen("tabular", pets, fraction)[0]) for fraction in (1.0, 0.25))
    before = whole.label
    assert len({whole, part}) == len({whole.label, part.label}) == 2
    assert "pets.csv" in whole.label
    assert "25 % of pets.csv" in part.label
    pets.write_text(pets.read_text().replace("blue", "green"))
    assert work_on(chosen("tabular", pets)[0]).label != before


def test_contestants_and_the_reference_get_the_model_in_the_sizes_of_the_data(pets: Path) -> None:
    numbers = pets.with_name("numbers.csv")
    numbers.write_text("legs,height\n" + "".join(f"{number % 5},{number / 7}\n" for number in range(60)))
    heights, colours = (materials_for(work_on(chosen("tabular", each)[0]), 0) for each in (numbers, pets))
    assert heights.folder != colours.folder
    assert (heights.spec.loss, heights.spec.outputs[0].sized(1)) == ("square_error", (1, 1))
    assert colours.spec.outputs[0].sized(1) == (1, 2)
    assert colours.weights["first.weight"].shape == (64, 2)
    assert colours.workload("inputs").inputs["features"].shape == (8, 2)


def test_what_was_understood_of_a_file_is_reported(pets: Path) -> None:
    reported: list[str] = []
    data_to_learn(find("tabular"), str(pets), 1.0, reported.append)
    [line] = reported
    for part in ("column colour", "60 items", "2 classes", "blue, red", "48", "12"):
        assert part in line


def test_data_that_changed_are_noticed(pets: Path, tmp_path: Path) -> None:
    work = work_on(chosen("tabular", pets)[0])
    plan = small_plan("torch", work, seed=0, to_score=0.9, most_epochs=2)
    save_plan(plan, tmp_path / "plan.json")
    saved = load_plan(tmp_path / "plan.json")
    assert saved == plan
    pets.write_text(pets.read_text().replace("0.0,0,blue", "0.5,0,blue"))
    assert str(pets) in refused("E_DATA_CHANGED", saved, by=require_same_sources)
    pets.unlink()
    refused("E_DATA", work, by=require_same_data)


def test_a_model_of_fixed_sizes_learns_what_fits_it(tmp_path: Path) -> None:
    def saved(name: str, features: int, labels: Any) -> Path:
        np.savez(tmp_path / name, image=np.random.default_rng(0).normal(size=(40, features)), labels=labels)
        return tmp_path / name

    data, spec = chosen("mlp", saved("fits.npz", 784, np.arange(40) % 4))
    assert data.sizes is None
    assert labelled(work_on(data, "mlp"), spec).inputs["image"].shape == (32, 784)
    assert "784" in refused("E_DATA", "mlp", saved("narrow.npz", 783, np.arange(40) % 4))
    assert "out of range" in refused("E_DATA", "mlp", saved("classes.npz", 784, np.arange(40) % 11))
    refused("E_DATA", "mlp", saved("values.npz", 784, np.arange(40) / 7))


def test_inputs_that_the_model_does_not_have_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=np.eye(20), b=np.eye(20), labels=np.arange(20) % 2)
    assert "features" in refused("E_DATA", "tabular", tmp_path / "two.npz")


@pytest.mark.parametrize("fraction", [0.0, -0.5, 1.5, float("nan")])
def test_a_fraction_is_a_share_of_the_items(fraction: float, pets: Path) -> None:
    refused("E_REQUEST", "tabular", pets, fraction)
