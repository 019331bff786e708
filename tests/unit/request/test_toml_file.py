"""What is wrong with a TOML file is said by its line and key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.toml_file import TomlFile, line_of


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    csv: str = ""
    count: int = 0
    currency: Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}$", description="Three capital letters.")] = "EUR"


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    models: list[str] = []
    blocks: Annotated[int, msgspec.Meta(ge=1)] = 1
    mode: Literal["infer", "grad"] = "infer"
    outputs: Inner = Inner()
    entry: list[Inner] = []


def refusal(folder: Path, text: str) -> str:
    file = folder / "a.toml"
    file.write_text(text)
    with pytest.raises(InvalidRequest) as told:
        TomlFile(file, "a plan").read(Outer)
    assert len(str(told.value).splitlines()) == 1
    return str(told.value).removeprefix(str(folder) + "/")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("blocks = 0\n", "a.toml, line 1: blocks: expected a whole number >= 1"),
        ("# first\n\nblocks = 'x'\n", "a.toml, line 3: blocks: expected a whole number, got text"),
        ("models = [\n 'a',\n 1,\n]\n", "a.toml, line 1: models[1]: expected text, got a whole number"),
        ("\nblokcs = 2\n", "a.toml, line 2: blokcs: there is no such key; did you mean blocks?"),
        ("zzz = 2\n", "line 1: zzz: there is no such key; there are models, blocks, mode, outputs, entry"),
        ("[outputs]\ncvs = 'x'\n", "line 2: outputs.cvs: there is no such key; did you mean csv?"),
        ("outputs = { csv = 1 }\n", "line 1: outputs.csv: expected text"),
        ("outputs.csv = 'x'\noutputs.count = 1.5\n", "line 2: outputs.count: expected a whole number"),
        ("[[entry]]\ncount = 1\n[[entry]]\ncount = 'y'\n", "line 4: entry[1].count: expected a whole number"),
        (
            "[[entry]]\n[[entry]]\nblocks = 2\n",
            "line 3: entry[1].blocks: there is no such key; there are csv, count, currency",
        ),
        ("entry = [{count = 1},\n {count = 'y'}]\n", "line 1: entry[1].count: expected a whole number"),
        ("mode = 'train'\n", "line 1: mode: there is no 'train'; there are grad, infer"),
        ("[[entry]]\ncurrency = 'euro'\n", "line 2: entry[0].currency: expected three capital letters"),
        ('a = """\nblocks = 0\n"""\nblocks = 0\n', "line 1: a: there is no such key"),
        ('blocks = 1\n"odd key" = 2\n', "line 2: odd key: there is no such key"),
        ("blocks = \n", "a.toml, line 1: this is not TOML: Invalid value"),
        ("blocks = 1\nblocks = 2\n", "a.toml, line 2: this is not TOML: Cannot overwrite a value"),
        ("[outputs", "this is not TOML"),
        ("\0", "this is not TOML"),
    ],
)
def test_a_fault_is_told_with_line_and_key(text: str, words: str, tmp_path: Path) -> None:
    assert words in refusal(tmp_path, text)


def test_a_key_inside_a_text_is_not_taken_for_the_key() -> None:
    text = 'note = """\nblocks = 0\n"""\n# blocks = 1\nblocks = 2\n'
    assert line_of(text, ("blocks",)) == 5
    assert line_of(text, ("nothing",)) is None


def test_a_good_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("blocks = 3\n[outputs]\ncsv = 'x'\n")
    assert TomlFile(tmp_path / "a.toml", "a plan").read(Outer) == Outer(blocks=3, outputs=Inner(csv="x"))


def test_a_byte_order_mark_at_the_head_is_no_fault_and_moves_no_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfblocks = 3\r\n")
    assert TomlFile(tmp_path / "a.toml", "a plan").read(Outer) == Outer(blocks=3)
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfblocks = 0\r\n")
    with pytest.raises(InvalidRequest, match=r"a\.toml, line 1: blocks: expected a whole number"):
        TomlFile(tmp_path / "a.toml", "a plan").read(Outer)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"a plan, .*none.toml, cannot be read: No such file"):
        TomlFile(tmp_path / "none.toml", "a plan")
    with pytest.raises(InvalidRequest, match="cannot be read: Is a directory"):
        TomlFile(tmp_path, "a plan")
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidRequest, match="is not a plan: it is not UTF-8"):
        TomlFile(tmp_path / "a.toml", "a plan")
    (tmp_path / "a.toml").write_bytes(b"#" * 2_000_000)
    with pytest.raises(InvalidRequest, match="is too large for a plan"):
        TomlFile(tmp_path / "a.toml", "a plan")
    (tmp_path / "a.toml").write_text("a = " + "[" * 5000)
    with pytest.raises(InvalidRequest, match="this is not TOML"):
        TomlFile(tmp_path / "a.toml", "a plan").read(Outer)
