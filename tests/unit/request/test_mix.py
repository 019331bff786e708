"""A file of lengths becomes a mix of distinct sizes with their calls, and anything else is refused with its line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.fields.sizes.mix import MOST_SIZES, mix_in
from fairlap.request.fields.source import Source
from fairlap.request.work import Work


def file_of(folder: Path, text: str) -> str:
    path = folder / "lengths.csv"
    path.write_bytes(text.encode())
    return str(path)


def test_sizes_are_counted_and_their_order_in_the_file_says_nothing(tmp_path: Path) -> None:
    mix = mix_in(file_of(tmp_path, "batch, sequence\n1,37\n2,8\n1,37\n\n1,9\n"))
    assert mix.names == ("batch", "sequence")
    assert mix.sizes == ((1, 9), (1, 37), (2, 8))
    assert mix.calls == (1, 2, 1)
    assert mix.dims(mix.usual) == (("batch", 1), ("sequence", 37))
    assert sum(mix.shares) == pytest.approx(1)
    again = mix_in(file_of(tmp_path, "\ufeffbatch,sequence\r\n1,9\r\n1,37\r\n2,8\r\n1,37\r\n"))
    assert again == mix


def test_of_several_usual_sizes_the_largest_is_the_one_it_is_prepared_for(tmp_path: Path) -> None:
    mix = mix_in(file_of(tmp_path, "sequence\n8\n64\n8\n64\n100\n"))
    assert mix.sizes[mix.usual] == (64,)
    assert mix.label(mix.usual) == "64"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", ""),
        ("sequence\n", ""),
        ("sequence\n0\n", "line 2"),
        ("sequence\n8\n-3\n", "line 3"),
        ("sequence\n8\n1.5\n", "line 3"),
        ("sequence\n8,9\n", "line 2"),
        ("sequence\n99999999999999999999\n", "line 2"),
        ("16\n32\n", "16"),
        ("sequence,sequence\n8,8\n", "sequence,sequence"),
        ("sequence\n\x00\n", "line"),
    ],
)
def test_what_is_no_list_of_sizes_is_one_line_with_a_code(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        mix_in(file_of(tmp_path, text))
    assert refused.value.code == "E_SHAPES"
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_missing_a_folder_or_no_text_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "binary.csv"):
        with pytest.raises(InvalidRequest) as refused:
            mix_in(str(path))
        assert refused.value.code == "E_SHAPES"


def test_more_distinct_sizes_than_are_proven_are_refused(tmp_path: Path) -> None:
    lines = [f"{size}\n" for size in range(1, MOST_SIZES + 2)]
    with pytest.raises(InvalidRequest, match=str(MOST_SIZES + 1)):
        mix_in(file_of(tmp_path, "sequence\n" + "".join(lines)))
    assert len(mix_in(file_of(tmp_path, "sequence\n" + "".join(lines[1:] * 3))).sizes) == MOST_SIZES


def test_a_mix_makes_another_work_wherever_its_file_is(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    mix = mix_in(file_of(tmp_path, "sequence\n8\n9\n"))
    source = Source("m.onnx", "/m.onnx", dims=(("sequence", 9),), files=(("/m.onnx", "ab"),))
    fixed, mixed, moved, other = (
        Work("m.onnx", 1, source=msgspec.structs.replace(source, mix=each))
        for each in (
            None,
            mix,
            mix_in(file_of(tmp_path / "elsewhere", "sequence\n9\n8\n")),
            mix_in(file_of(tmp_path, "sequence\n8\n8\n9\n")),
        )
    )
    assert mixed.id == moved.id
    assert len({fixed.id, mixed.id, other.id}) == 3
    assert mixed.mix == mix
    assert fixed.mix is None
    assert mix.text in mixed.label


def test_a_source_is_split_into_one_for_each_size(tmp_path: Path) -> None:
    mix = mix_in(file_of(tmp_path, "sequence\n8\n9\n9\n"))
    source = Source("m.onnx", "/m.onnx", dims=(("batch", 2), *mix.dims(mix.usual)), mix=mix)
    assert source.name == "m.onnx[batch=2]"
    assert [dict(each.dims) for each in source.at_each_size] == [
        {"batch": 2, "sequence": 8},
        {"batch": 2, "sequence": 9},
    ]
    assert all(each.mix is None for each in source.at_each_size)
    assert source.at_each_size[mix.usual].dims == source.dims
