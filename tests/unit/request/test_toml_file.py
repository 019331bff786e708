"""What is wrong with a TOML file is reported with its key."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.names import Contestants
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
    contestants: Contestants | None = None
    inner: Inner = Inner()
    entry: list[Inner] = []
    named: dict[str, str | Inner] = {}


def refusal(folder: Path, content: bytes) -> InvalidRequest:
    file = folder / "a.toml"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest) as refused:
        read_toml(file, Outer, "a request file")
    assert len(str(refused.value).splitlines()) == 1
    assert str(refused.value).startswith(f"{file}")
    return refused.value


@pytest.mark.parametrize(
    ("text", "code", "parts"),
    [
        ("blocks = 'x'", "E_REQUEST", ["blocks:", "a whole number"]),
        ("models = ['a', 1]", "E_REQUEST", ["models[1]:", "text"]),
        ("[[entry]]\n[[entry]]\ncount = 'y'", "E_REQUEST", ["entry[1].count:"]),
        ("mode = 'train'", "E_REQUEST", ["mode: 'train'", "grad, infer"]),
        ("target = '200%'", "E_REQUEST", ["target: '200%'"]),
        ("target = true", "E_REQUEST", ["target: "]),
        ("contestants = ['torch:a:b']", "E_CONTESTANT", ["contestants", "'torch:a:b'"]),
        ("contestants = [1, 2]", "E_CONTESTANT", ["contestants", "1"]),
        ("contestants = 1", "E_CONTESTANT", ["contestants", "1"]),
        ("contestants = [['torch']]", "E_CONTESTANT", ["contestants", "['torch']"]),
        ("blokcs = 2", "E_TOML", ["blokcs;", "blocks?"]),
        ("zzz = 2", "E_TOML", ["zzz;", "models, blocks"]),
        ("[inner]\ncvs = 'x'", "E_TOML", ["inner.cvs;", "csv?"]),
        ("[[entry]]\nblocks = 2", "E_TOML", ["entry[0].blocks;", "csv, count"]),
        ("[named.one]\nblocks = 2", "E_TOML", ["blocks;", "csv, count"]),
        ("[named.one]\ncvs = 'x'", "E_TOML", ["cvs;", "csv?"]),
        ("[named]\none.count = 'y'", "E_REQUEST", ["count:"]),
        ("[named.one.two]\nx = 1", "E_TOML", ["two;", "csv, count"]),
        ("blocks = ", "E_TOML", []),
        ("blocks = 1\nblocks = 2", "E_TOML", []),
        ("\0", "E_TOML", []),
        ("a = " + "[" * 5000, "E_TOML", []),
        ("#" * 2_000_000, "E_TOML", []),
        ("\udcff", "E_TOML", []),
        (".".join("a" * 120) + " = 1", "E_TOML", []),
        ("[" + " . ".join(["'a'"] * 120) + "]", "E_TOML", []),
        ('"a"' + '."b"' * 120 + " = 1", "E_TOML", []),
    ],
)
def test_an_error_has_a_code_and_names_the_key(text: str, code: str, parts: list[str], tmp_path: Path) -> None:
    refused = refusal(tmp_path, text.encode(errors="surrogateescape"))
    assert refused.code == code
    assert [part for part in parts if part not in str(refused)] == []


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InvalidRequest) as refused:
            read_toml(path, Outer, "a request file")
        assert refused.value.code == "E_TOML"


def test_a_good_file_is_read_also_after_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(b"\xef\xbb\xbfblocks = 3\r\ntarget = '1%'\r\n[inner]\ncsv = 'x'\n")
    assert read_toml(file, Outer, "a request file") == Outer(blocks=3, target=Share(0.01), inner=Inner(csv="x"))
