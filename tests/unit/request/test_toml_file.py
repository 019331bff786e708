"""What is wrong with a TOML file is reported with its key."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.toml_file import read_toml
from fairlap.request.units import Share


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    csv: str = ""
    count: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    models: list[str] = []
    blocks: int = 1
    mode: Literal["infer", "grad"] = "infer"
    target: Share | None = None
    inner: Inner = Inner()
    entry: list[Inner] = []


def refusal(folder: Path, content: bytes) -> str:
    file = folder / "a.toml"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest) as refused:
        read_toml(file, Outer, "a request file")
    assert refused.value.code == "E_TOML"
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("blocks = 'x'", "a.toml: blocks: expected a whole number, got text"),
        ("models = ['a', 1]", "a.toml: models[1]: expected text"),
        ("blokcs = 2", "unknown key blokcs; did you mean blocks?"),
        ("zzz = 2", "unknown key zzz; known keys: models, blocks"),
        ("[inner]\ncvs = 'x'", "unknown key inner.cvs; did you mean csv?"),
        ("[[entry]]\n[[entry]]\ncount = 'y'", "entry[1].count: expected a whole number"),
        ("[[entry]]\nblocks = 2", "unknown key entry[0].blocks; known keys: csv, count"),
        ("mode = 'train'", "mode: 'train' is not one of grad, infer"),
        ("target = '200%'", "target: '200%' is not a share"),
        ("target = true", "target: "),
        ("blocks = ", "not valid TOML"),
        ("blocks = 1\nblocks = 2", "not valid TOML"),
        ("\0", "not valid TOML"),
        ("a = " + "[" * 5000, "not valid TOML"),
        ("#" * 2_000_000, "too large"),
    ],
)
def test_an_error_names_the_file_and_the_key(text: str, words: str, tmp_path: Path) -> None:
    assert words in refusal(tmp_path, text.encode())


def test_other_encodings_and_unreadable_files_are_refused(tmp_path: Path) -> None:
    assert "UTF-8" in refusal(tmp_path, b"\xff\xfe")
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InvalidRequest, match="cannot read"):
            read_toml(path, Outer, "a request file")


def test_a_good_file_is_read_also_after_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(b"\xef\xbb\xbfblocks = 3\r\ntarget = '1%'\r\n[inner]\ncsv = 'x'\n")
    assert read_toml(file, Outer, "a request file") == Outer(blocks=3, target=Share(0.01), inner=Inner(csv="x"))
