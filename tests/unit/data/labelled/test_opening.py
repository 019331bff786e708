"""What a user writes for data: a set, a file, a column of a file, a folder; and what is none of these."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import InvalidRequest
from fairlap.request.training_data import TrainingData

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
