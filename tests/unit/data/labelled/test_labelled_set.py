"""What a user writes for data, and what is held out of it: always the same, and unknown to what is learnt."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from fairlap.data.labelled.items import Items, items_with_classes, items_with_values
from fairlap.data.labelled.labelled_set import parted
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import InvalidRequest
from fairlap.request.fields.data.training_data import TrainingData

ITEMS = 200


def table() -> Items:
    """Make a table whose first feature numbers the items; a tenth of them are of the second class."""
    rng = np.random.default_rng(5)
    features = np.stack([np.arange(ITEMS), rng.normal(7, 3, ITEMS), np.full(ITEMS, 4.0)], axis=1)
    return items_with_classes({"features": features}, np.where(np.arange(ITEMS) % 10, "often", "rare"), "table")


def numbers_of(items: Items, fraction: float) -> tuple[set[int], set[int]]:
    """Of the items that are learnt from, and of those that are held out."""
    numbered = Items({"number": np.arange(ITEMS).reshape(-1, 1, 1)}, items.labels, items.classes)
    found = parted(numbered, fraction=fraction)
    return set(found.inputs["number"].ravel()), set(found.held_inputs["number"].ravel())


def test_a_fifth_is_held_out_and_the_same_one_for_every_fraction() -> None:
    learnt, held = numbers_of(table(), 1.0)
    assert (len(learnt), len(held), learnt | held) == (160, 40, set(range(ITEMS)))
    for fraction in (0.01, 0.1, 0.5):
        assert numbers_of(table(), fraction)[1] == held


def test_a_larger_fraction_has_the_items_of_a_smaller_one() -> None:
    few, more, all_of_them = (numbers_of(table(), fraction)[0] for fraction in (0.1, 0.5, 1.0))
    assert few < more < all_of_them


@pytest.mark.parametrize("fraction", [0.02, 0.25, 0.5])
def test_a_fraction_has_as_large_a_share_of_every_class_and_at_least_one_item(fraction: float) -> None:
    whole = np.bincount(parted(table()).labels)
    drawn = np.bincount(parted(table(), fraction=fraction).labels)
    assert drawn.tolist() == [max(1, round(fraction * count)) for count in whole]


def test_values_are_drawn_without_classes() -> None:
    items = items_with_values({"features": np.random.default_rng(0).normal(size=(ITEMS, 2))}, np.arange(200.0), "table")
    assert len(parted(items, fraction=0.25).labels) == 40


def test_tables_are_scaled_by_the_items_that_are_learnt_from_alone() -> None:
    found = parted(table())
    learnt, held = found.inputs["features"], found.held_inputs["features"]
    assert learnt.dtype == held.dtype == np.float32
    np.testing.assert_allclose(learnt[:, :2].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(learnt[:, :2].std(axis=0), 1, atol=1e-6)
    assert abs(held[:, 0].mean()) > 1e-3
    assert set(learnt[:, 2]) == set(held[:, 2]) == {0.0}  # a feature that never changes


def test_other_held_out_items_change_nothing_of_what_is_learnt() -> None:
    items = table()
    held = np.random.default_rng(0).permutation(ITEMS)[:40]
    features = items.inputs["features"].copy()
    features[held] += 1000.0
    changed = Items({"features": features}, items.labels, items.classes)
    np.testing.assert_array_equal(parted(changed).inputs["features"], parted(items).inputs["features"])


def test_a_fraction_is_scaled_by_its_own_items() -> None:
    np.testing.assert_allclose(parted(table(), fraction=0.25).inputs["features"][:, 0].mean(), 0, atol=1e-6)


def test_images_stay_as_they_are() -> None:
    images = np.random.default_rng(0).random((ITEMS, 1, 2, 2), np.float32)
    found = parted(items_with_classes({"image": images}, np.arange(ITEMS) % 2, "images"))
    assert {each.tobytes() for each in found.inputs["image"]} < {each.tobytes() for each in images}


def test_values_are_scaled_too_and_stand_in_one_column() -> None:
    values = np.random.default_rng(3).normal(150, 40, ITEMS)
    found = parted(items_with_values({"features": values[:, None]}, values, "table"))
    assert (found.labels.shape, found.labels.dtype, found.held_labels.shape) == (
        (160, 1),
        np.dtype(np.float32),
        (40, 1),
    )
    np.testing.assert_allclose((found.labels.mean(), found.labels.std()), (0, 1), atol=1e-6)


def test_a_class_whose_every_item_is_held_out_is_refused() -> None:
    held = np.random.default_rng(0).permutation(ITEMS)[0]
    labels = np.where(np.arange(ITEMS) == held, "lonely", np.where(np.arange(ITEMS) % 2, "odd", "even"))
    items = items_with_classes({"features": np.eye(ITEMS)}, labels, "table")
    with pytest.raises(InvalidRequest, match="lonely") as raised:
        parted(items)
    assert raised.value.code == "E_DATA"


def test_the_hash_of_items_is_of_inputs_labels_and_the_names_of_classes() -> None:
    items = table()
    others = [
        Items({"features": items.inputs["features"] + 1}, items.labels, items.classes),
        Items(items.inputs, 1 - items.labels, items.classes),
        Items(items.inputs, items.labels, ("a", "b")),
    ]
    assert items.hash == table().hash
    assert len({items.hash, *(each.hash for each in others)}) == 4


CSV = "x,kind,y\n" + "".join(f"{number},{'ab'[number % 2]},{number % 3}\n" for number in range(12))


def test_a_built_in_set_is_named() -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    assert data_named("diabetes") == TrainingData("diabetes")
    assert len(items_in(data_named("diabetes"))) == 442


def test_a_table_may_name_its_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pets.csv").write_text(CSV.replace(",a,", ",0,").replace(",b,", ",1,"))
    monkeypatch.chdir(tmp_path)
    whole = TrainingData("pets.csv", str(tmp_path / "pets.csv"))
    assert data_named("pets.csv") == whole
    assert data_named("pets.csv:kind") == TrainingData("pets.csv:kind", whole.path, "kind")
    assert items_in(whole).classes == ("0", "1", "2")
    assert items_in(data_named("pets.csv:kind")).classes == ("0", "1")
    assert items_in(whole).hash != items_in(data_named("pets.csv:kind")).hash


def test_the_ending_of_a_file_decides_how_it_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "pets.NPZ", x=np.eye(6), labels=np.arange(6) % 2)
    (tmp_path / "pets.NPZ.npz").rename(tmp_path / "pets.NPZ")
    assert len(items_in(data_named(str(tmp_path / "pets.NPZ")))) == 6


@pytest.mark.parametrize("text", ["", " ", "pets.csv:", "a\nb.csv", "no_such_set", "no/such.csv", "notes.txt"])
def test_what_is_no_data_is_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("not data")
    with pytest.raises(InvalidRequest) as raised:
        items_in(data_named(text))
    assert raised.value.code == "E_DATA"
    assert len(str(raised.value).splitlines()) == 1


def test_a_set_of_an_edited_plan_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidRequest) as raised:
        items_in(TrainingData("no_such_set"))
    assert raised.value.code == "E_DATA"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text(CSV)
    (tmp_path / "pets.csv").chmod(0)
    with pytest.raises(InvalidRequest) as raised:
        items_in(data_named(str(tmp_path / "pets.csv")))
    assert raised.value.code == "E_DATA"
