"""Groups and labels of items come from columns of tables or arrays; anything else is one line with the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.labels import groups_in, labels_in
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.request.fields.data.table_column import absolute, file_and_column
from fairlap.request.fields.source import Source, with_paths
from fairlap.request.work import Work

PEOPLE = "income,sex,town\n1,f,Rome\n0,m,Bonn\n1,f,Bonn\n"


def people(folder: Path, name: str = "people.csv", text: str = PEOPLE) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize("name", ["people.csv", "people.tsv"])
def test_a_column_of_a_table_has_the_group_of_each_item(tmp_path: Path, name: str) -> None:
    file = people(tmp_path, name, PEOPLE.replace(",", "\t") if name.endswith(".tsv") else PEOPLE)
    numbers, names = groups_in(f"{file}:sex", 3)
    assert (numbers.tolist(), names) == ([0, 1, 0], ("f", "m"))
    assert labels_in(f"{file}:income", ["top1"]).tolist() == [1, 0, 1]


def test_parquet_and_arrays_have_groups_too(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="`make test` installs it and runs this")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"age": [70, 9, 70], "score": [0.5, 1.5, 2.0]}), tmp_path / "p.parquet")
    assert groups_in(f"{tmp_path}/p.parquet:age", 3)[1] == ("70", "9")
    assert labels_in(f"{tmp_path}/p.parquet:score", ["mse"]).tolist() == [0.5, 1.5, 2.0]
    np.save(tmp_path / "g.npy", np.array([10, 9, 10]))
    assert groups_in(str(tmp_path / "g.npy"), 3)[1] == ("9", "10")


@pytest.mark.parametrize(
    ("text", "column", "items"),
    [
        (PEOPLE, "age", 3),  # no such column
        (PEOPLE, "", 3),  # none is named
        (PEOPLE, "sex", 4),  # one for another number of items
        ("a,b\n1,x\n2,x\n3,x\n", "b", 3),  # one group alone
        ("a,b\n1,x\n2,\n3,y\n", "b", 3),  # an item without a group
        ("a,b\n1\n2,x\n3,y\n", "b", 3),  # a line that is too short
        ("a,b\n", "b", 0),
        ("a,b\n" + "".join(f"{n},{n}\n" for n in range(60)), "b", 60),  # values rather than groups
        ("a,b\n1,x\n2," + "y" * 80 + "\n3,x\n", "b", 3),
        ("a,a\n1,x\n2,y\n", "a", 2),
    ],
)
def test_other_columns_are_refused_with_the_file(tmp_path: Path, text: str, column: str, items: int) -> None:
    file = people(tmp_path, text=text)
    with pytest.raises(SourceError) as refused:
        groups_in(f"{file}:{column}" if column else file, items)
    assert refused.value.code == "E_METRIC"
    assert file in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_table_takes_no_column(tmp_path: Path) -> None:
    assert file_and_column("/a/b.npy") == ("/a/b.npy", "")
    assert file_and_column("/a:b/p.csv:x y") == ("/a:b/p.csv", "x y")
    assert absolute("") == ""
    np.save(tmp_path / "g.npy", np.ones((3, 2)))
    with pytest.raises(SourceError) as refused:
        groups_in(str(tmp_path / "g.npy"), 3)
    assert refused.value.code == "E_METRIC"


def test_groups_move_with_their_file_and_define_no_other_work() -> None:
    source = Source("net.onnx", "/a/net.onnx", "/a", labels="/a/p.csv:y", groups="/a/p.csv:sex")
    moved = with_paths(source, lambda path: path.replace("/a", "/b"))
    assert (moved.labels, moved.groups) == ("/b/p.csv:y", "/b/p.csv:sex")
    other = Source("net.onnx", "/a/net.onnx", "/a", labels="/a/p.csv:y")
    assert Work("net.onnx", 4, source=source).id == Work("net.onnx", 4, source=other).id


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_the_other_columns_of_a_table_are_features(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name.endswith(".csv"):
        file.write_text("age,income,sex,hours\n30, 1,f,40.5\n41,0,m,20\n")
    else:
        arrow = pytest.importorskip("pyarrow", reason="`make test` installs it and runs this")
        from pyarrow import parquet

        rows = {"age": [30, 41], "income": [1, 0], "sex": ["f", "m"], "hours": [40.5, 20.0]}
        parquet.write_table(arrow.table(rows), file)
    source = Source("m.onnx", str(tmp_path / "m.onnx"), inputs=str(file), labels=f"{file}:income", groups=f"{file}:sex")
    [found] = inputs_of(source)
    assert found[""].tolist() == [[30, 40.5], [41, 20]]
    assert found[""].dtype == np.float32
    with pytest.raises(SourceError) as refused:  # sex is text, unless it is the group
        inputs_of(Source("m.onnx", str(tmp_path / "m.onnx"), inputs=str(file), labels=f"{file}:income"))
    assert refused.value.code == "E_SOURCE_INPUTS"
    assert str(file) in str(refused.value)
    with pytest.raises(SourceError) as misspelt:
        inputs_of(
            Source("m.onnx", str(tmp_path / "m.onnx"), inputs=str(file), labels=f"{file}:income", groups=f"{file}:sx")
        )
    assert "'sx'" in str(misspelt.value)
