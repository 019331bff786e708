"""The inputs that a user gives are those that are raced; the checks use other ones of the same kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.sources import opening
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.reading import given_inputs
from fairlap.models.sources.inputs import (
    batches_of,
    calibration_sets,
    cast_notices,
    input_sets,
    of_tensors,
    shapes_of,
)
from fairlap.models.spec import Integers, Tensor
from onnx_files import source_of

SEEDS = {"inputs": 0, "changed": 1000, "unseen-0": 2000}
TENSORS = (Tensor("ids", (2, 3), Integers(0, 10), "int64"), Tensor("scale", (2,), dtype="float32"))
IDS = np.array([[1, 2, 3], [4, 5, 9]])
SCALE = np.array([0.5, 2.0], np.float32)


def sets_from(path: Path | str, folder: str = "") -> dict[str, dict[str, np.ndarray]]:
    return input_sets(TENSORS, given_inputs(str(path), folder), None, SEEDS)


def test_the_first_set_is_the_user_s_and_others_are_its_values_in_another_order(tmp_path: Path) -> None:
    np.savez(tmp_path / "batch.npz", ids=IDS, scale=SCALE)
    sets = sets_from(tmp_path / "batch.npz")
    assert list(sets) == list(SEEDS)
    np.testing.assert_array_equal(sets["inputs"]["ids"], IDS)
    assert not np.array_equal(sets["changed"]["ids"], IDS)
    assert not np.array_equal(sets["changed"]["ids"], sets["unseen-0"]["ids"])
    assert sorted(sets["changed"]["ids"].flat) == sorted(IDS.flat)


def test_a_function_may_give_several_sets(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "def batches():\n"
        "    for number in range(5):\n"
        "        yield {'ids': np.full((2, 3), number), 'scale': np.ones(2, np.float32)}\n"
    )
    sets = sets_from(f"{tmp_path}/own.py:batches")
    assert [int(own["ids"][0, 0]) for own in sets.values()] == [0, 1, 2]


def test_calibration_takes_the_sets_that_checks_leave(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "def batches(count):\n"
        "    for number in range(count):\n"
        "        yield {'ids': np.full((2, 3), number), 'scale': np.ones(2, np.float32)}\n"
        "def two():\n    return batches(2)\n"
        "def five():\n    return batches(5)\n"
    )

    def firsts(function: str) -> tuple[list[int], list[int]]:
        given = given_inputs(f"{tmp_path}/own.py:{function}", "")
        checks, calibrating = input_sets(TENSORS, given, None, SEEDS), calibration_sets(TENSORS, given, None, SEEDS, 2)
        return [int(own["ids"][0, 0]) for own in checks.values()], [
            int(own["ids"][0, 0]) for own in calibrating.values()
        ]

    assert firsts("five") == ([0, 1, 2], [3, 4])
    checks, calibrating = firsts("two")
    assert (checks[0], calibrating) == (0, [1])


def test_one_set_is_calibrated_on_and_without_any_64_items_are_drawn_that_no_check_has(tmp_path: Path) -> None:
    np.savez(tmp_path / "batch.npz", ids=IDS, scale=SCALE)
    given = given_inputs(str(tmp_path / "batch.npz"), "")
    (own,) = calibration_sets(TENSORS, given, None, SEEDS, 2).values()
    np.testing.assert_array_equal(own["ids"], IDS)
    drawn = calibration_sets(TENSORS, [], None, SEEDS, 16)
    assert len(drawn) == 8
    assert len(calibration_sets(TENSORS, [], None, SEEDS, 1)) == 64
    checked = input_sets(TENSORS, [], None, SEEDS)
    assert not any(np.array_equal(own["scale"], other["scale"]) for own in drawn.values() for other in checked.values())


def test_a_test_data_set_of_onnx_is_read_by_name_or_by_place(tmp_path: Path) -> None:
    numpy_helper = pytest.importorskip("onnx.numpy_helper", reason="`make test` installs it and runs this")
    (tmp_path / "input_0.pb").write_bytes(numpy_helper.from_array(IDS).SerializeToString())
    (tmp_path / "input_1.pb").write_bytes(numpy_helper.from_array(SCALE, "scale").SerializeToString())
    with pytest.raises(FairlapError):  # one has a name, and the other has none
        sets_from(tmp_path)
    (tmp_path / "input_1.pb").write_bytes(numpy_helper.from_array(SCALE).SerializeToString())
    np.testing.assert_array_equal(sets_from(tmp_path)["inputs"]["scale"], SCALE)


def test_shapes_come_from_the_first_set(tmp_path: Path) -> None:
    np.savez(tmp_path / "batch.npz", ids=IDS, scale=SCALE)
    assert shapes_of(given_inputs(str(tmp_path / "batch.npz"), ""), ["ids", "scale"]) == {"ids": (2, 3), "scale": (2,)}
    assert shapes_of([], ["ids"]) == {}


def test_whole_numbers_of_another_width_are_converted_where_they_fit(tmp_path: Path) -> None:
    np.savez(tmp_path / "batch.npz", ids=IDS.astype(np.int32), scale=SCALE.astype(np.float64))
    first = sets_from(tmp_path / "batch.npz")["inputs"]
    assert {name: str(array.dtype) for name, array in first.items()} == {"ids": "int64", "scale": "float32"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"ids": IDS + 1, "scale": SCALE},
        {"ids": -IDS, "scale": SCALE},
        {"ids": IDS.astype(np.float32), "scale": SCALE},
        {"ids": IDS.T, "scale": SCALE},
        {"ids": IDS},
        {"ids": IDS, "scale": SCALE, "more": SCALE},
        {"ids": IDS, "scale": SCALE * np.float32(np.nan)},
    ],
    ids=["out of range", "negative", "floats for ids", "another shape", "one missing", "one too many", "not finite"],
)
def test_inputs_that_the_model_does_not_take_are_refused(tmp_path: Path, wrong: dict[str, np.ndarray]) -> None:
    np.savez(tmp_path / "batch.npz", **wrong)  # type: ignore[arg-type]
    with pytest.raises(FairlapError) as refused:
        sets_from(tmp_path / "batch.npz")
    assert refused.value.code == "E_SOURCE_INPUTS"


@pytest.mark.parametrize(("second", "refused"), [(0, True), (3, False)])
def test_inputs_without_any_element_are_refused_and_one_of_several_is_not(second: int, refused: bool) -> None:
    tensors = [Tensor("x", (0, 4)), Tensor("y", (second,))]
    own: dict[str, np.ndarray] = {each.name: np.zeros(each.sized(1), np.float32) for each in tensors}
    if not refused:
        assert set(of_tensors(own, tensors)) == {"x", "y"}
        return
    with pytest.raises(FairlapError) as error:
        of_tensors(own, tensors)
    assert error.value.code == "E_SOURCE_INPUTS"


def test_what_is_no_inputs_is_refused_and_a_pickle_is_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (tmp_path / "short.npz").write_bytes(b"PK")
    (tmp_path / "text.txt").write_text("1 2 3")
    (tmp_path / "raises.py").write_text("def batch():\n    raise SystemExit(3)\n")
    for name in ("pickled.npy", "short.npz", "text.txt", "none.npz", "raises.py:batch", "none.py:batch"):
        with pytest.raises(FairlapError) as refused:
            sets_from(tmp_path / name)
        assert refused.value.code == "E_SOURCE_INPUTS"


def test_floats_that_lose_digits_are_stated_and_whole_numbers_that_fit_are_not() -> None:
    notices = cast_notices(TENSORS, [{"ids": IDS.astype(np.int32), "scale": SCALE.astype(np.float64)}])
    assert [notice.code for notice in notices] == ["W_INPUTS_CAST"]
    assert cast_notices(TENSORS, [{"ids": IDS, "scale": SCALE}]) == cast_notices(TENSORS, []) == []


def test_objects_are_not_unpickled_and_nothing_advises_to_do_so(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FairlapError) as refused:
        given_inputs(str(tmp_path / "objects.npy"), "")
    assert refused.value.code == "E_SOURCE_INPUTS"
    assert "allow_pickle" not in str(refused.value)


def test_data_for_a_metric_comes_in_batches_and_the_last_one_is_filled_up() -> None:
    data: dict[str, np.ndarray] = {"ids": np.arange(15).reshape(5, 3), "scale": np.arange(5, dtype=np.float32)}
    batches, items = batches_of(TENSORS, [data], {})
    assert items == 5
    assert [batch["scale"].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 0]]
    assert batches[2]["ids"][1].tolist() == [0, 1, 2]
    uneven: dict[str, np.ndarray] = {**data, "scale": np.ones(4, np.float32)}
    for wrong in ([], [data, data], [uneven]):
        with pytest.raises(FairlapError) as refused:
            batches_of(TENSORS, wrong, {})
        assert refused.value.code == "E_SOURCE_INPUTS"


@pytest.mark.parametrize(
    ("function", "why"),
    [("leaves", "exit status 3"), ("dies", "signal 9"), ("raises", "no weather"), ("gives_text", "not arrays by name")],
)
def test_a_function_for_inputs_that_fails_is_one_error(tmp_path: Path, function: str, why: str) -> None:
    (tmp_path / "own.py").write_text(
        "import os\n"
        "def leaves():\n    os._exit(3)\n"
        "def dies():\n    os.kill(os.getpid(), 9)\n"
        "def raises():\n    raise ValueError('no weather')\n"
        "def gives_text():\n    return ['text']\n"
    )
    with pytest.raises(SourceError, match=why) as refused:
        given_inputs(f"{tmp_path}/own.py:{function}", "")
    assert refused.value.code == "E_SOURCE_INPUTS"


def test_the_whole_file_system_is_no_folder_of_inputs(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as refused:
        opening._hashes_of_given(source_of(tmp_path / "model.onnx", inputs="/"))
    assert refused.value.code == "E_SOURCE_INPUTS"
    assert str(refused.value).startswith("/ ")


def test_a_file_that_goes_away_while_inputs_are_hashed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", SCALE)
    monkeypatch.setattr(opening, "_files_in", lambda paths: [each.with_name(f"{each.name}.gone") for each in paths])
    with pytest.raises(SourceError, match=r"x\.npy\.gone") as refused:
        opening._hashes_of_given(source_of(tmp_path / "model.onnx", inputs=str(tmp_path / "x.npy")))
    assert refused.value.code == "E_SOURCE_INPUTS"
