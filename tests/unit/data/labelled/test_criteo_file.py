"""Criteo's logs become what DLRM takes; a wrong line is named."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fairlap.bench_models.dlrm.spec import SPEC
from fairlap.data.labelled import criteo_file
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import InvalidRequest
from fairlap.models.registry import find
from fairlap.scenarios.learning.race.learning_data import data_to_learn

# A line in the layout of the Kaggle competition's train.txt.
FIRST = (
    "0\t1\t1\t5\t0\t1382\t4\t15\t2\t181\t1\t2\t\t2\t68fd1e64\t80e26c9b\tfb936136\t7b4723c4\t25c83c98\t7e0ccccf\tde7995b8"
    "\t1f89b562\ta73ee510\ta8cd5504\tb2cb9c98\t37c9c164\t2824a5f6\t1adce6ef\t8ba8b39a\t891b62e7\te5ba7672\tf54016b9"
    "\t21ddcdc9\tb1252a9d\t07b5194c\t\t3a171ecb\tc5c50484\te8b83407\t9727dd16"
)
COUNTS = [1, 1, 5, 0, 1382, 4, 15, 2, 181, 1, 2, 0, 2]


def lines(count: int = 12) -> list[str]:
    """Repeat the first one with both labels, a negative count and other hashes."""
    found = []
    for number in range(count):
        cells = FIRST.split("\t")
        cells[0], cells[2], cells[14] = str(number % 2), str(number - 2), f"{number * 7919:08x}"
        found.append("\t".join(cells))
    return found


def log(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join([FIRST, *rows]) + "\n")
    return path


def rows_by_hand(text: str) -> list[int]:
    number = int(text or "0", 16)
    return [number * odd % 2**32 % 10_000 for odd in (1, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)]


@pytest.mark.parametrize("name", ["train.txt", "day_0", "sample.tsv"])
def test_a_line_is_the_item_that_it_is_by_hand(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(criteo_file, "_LINES_AT_ONCE", 5)
    found = items_in(data_named(str(log(tmp_path / name, lines()))))
    assert found.inputs["numbers"][0] == pytest.approx([math.log(1 + count) for count in COUNTS])
    assert found.inputs["rows"][0].tolist() == [rows_by_hand(cell) for cell in FIRST.split("\t")[14:]]
    assert found.labels[:4, 0].tolist() == [0, 0, 1, 0]
    assert found.inputs["numbers"][1, 1] == 0  # it was -2
    for tensor in SPEC.inputs:
        assert found.inputs[tensor.name].shape[1:] == tensor.sized(1)[1:]
    assert len(found) == 13


def test_dlrm_takes_them(tmp_path: Path) -> None:
    data, spec = data_to_learn(find("dlrm"), str(log(tmp_path / "train.txt", lines(40))), 1.0, lambda _: None)
    assert (spec.name, len(data.hash) > 0) == ("dlrm", True)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace("\t1382\t", "\tmany\t"),
        lambda line: line.replace("80e26c9b", "80e26c9"),
        lambda line: line.replace("80e26c9b", "80e26c9G"),
        lambda line: line.replace("80e26c9b", "80e26c9:"),
        lambda line: line.rpartition("\t")[0],
        lambda line: "2" + line[1:],
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, change: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(criteo_file, "_LINES_AT_ONCE", 7)  # so that it is the first one of a part
    rows = lines()
    rows[6] = change(rows[6])
    path = log(tmp_path / "train.txt", rows)
    with pytest.raises(InvalidRequest) as refused:
        items_in(data_named(str(path)))
    assert refused.value.code == "E_DATA"
    assert f"{path}, line 8:" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_all_letters_of_a_hash_count() -> None:
    cells = np.array([[f"{number:08x}" for number in range(0xABCDEF00, 0xABCDEF00 + 26)]])
    found = criteo_file._rows(Path("x"), 1, cells)
    assert found[0, :, 0].tolist() == [number % 10_000 for number in range(0xABCDEF00, 0xABCDEF00 + 26)]
