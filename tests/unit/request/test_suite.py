"""A suite is read into races, each with what the file shares; what selects them says what was left out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.race_request import schema_text
from fairlap.request.suite import FILE, RaceOfSuite, Selection, Shard, SuiteFile, of_shard, read_suite, shard_in

TOP = Path(__file__).parents[3]
SUITE = """\
max_slowdown = "3%"
seconds = "100ms"
[[race]]
name = "parse"
tags = ["quick"]
call = "my_package.hot:parse"
[[race]]
name = "sort"
call = "my_package.hot:sort"
max_slowdown = "10%"
[[race]]
name = "convnet"
tags = ["models"]
models = ["convnet"]
contestants = ["torch", "onnxruntime"]
"""
CALL = '[[race]]\nname = "a"\ncall = "m:f"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "suite.toml"
    path.write_text(SUITE)
    return path


def test_every_race_has_what_the_file_shares_unless_it_has_its_own(file: Path) -> None:
    races = {each.name: each for each in read_suite(file).races}
    assert {name: each.max_slowdown for name, each in races.items()} == {"parse": 0.03, "sort": 0.1, "convnet": 0.03}
    assert {each.seconds for each in races.values()} == {0.1}
    assert races["parse"].kind == races["sort"].kind == "two sides"
    assert races["convnet"].kind == "contestants"


def test_the_hash_is_that_of_another_program(file: Path) -> None:
    printed = subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True).stdout
    assert read_suite(file).sha256 == printed.split()[0]


def test_what_is_not_selected_is_left_out_with_the_reason(file: Path) -> None:
    suite = read_suite(file)
    assert [each.name for each in suite.selected(Selection(), "two sides")] == ["parse", "sort"]
    assert [each.name for each in suite.selected(Selection(tags=("quick",)), "two sides")] == ["parse"]
    assert [each.name for each in suite.selected(Selection(only=("sort",)), "two sides")] == ["sort"]
    assert [each.name for each in suite.selected(Selection(), "contestants")] == ["convnet"]
    left = {each.name: each.why for each in suite.left_out(Selection(tags=("quick",)), "two sides")}
    assert set(left) == {"sort", "convnet"}
    assert "quick" in left["sort"]


def test_shards_are_disjoint_and_together_all(file: Path) -> None:
    races = [RaceOfSuite(name=str(number), call="m:f") for number in range(11)]
    shards = [of_shard(races, Shard(number, 5)) for number in range(1, 6)]
    assert sorted((each.name for shard in shards for each in shard), key=int) == [str(number) for number in range(11)]
    assert [each.name for each in shards[1]] == ["1", "6"]
    assert of_shard(races, None) == tuple(races)
    assert shard_in("2/5") == Shard(2, 5)


@pytest.mark.parametrize("text", ["0/5", "6/5", "2", "a/b", "2/5/6", "-1/5", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        shard_in(text)
    assert refused.value.code == "E_SUITE"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (CALL + CALL, "E_SUITE"),  # two of one name
        (CALL + 'command = "./b"\n', "E_SUITE"),
        (CALL + 'models = ["mlp"]\n', "E_SUITE"),
        ('[[race]]\nname = "a"\n', "E_SUITE"),
        ('[[race]]\nname = "a"\nmodels = ["mlp"]\n', "E_SUITE"),
        (CALL + "same_output = true\n", "E_SUITE"),
        ('[[race]]\nname = "a"\ncall = "without_a_module"\n', "E_SUITE"),
        ('[[race]]\nname = "a"\ncommand = "./b"\ninputs = "m:draw"\n', "E_SUITE"),
        ('output = ["a.json"]\n' + CALL, "E_SUITE"),
        ("trust = true\n" + CALL, "E_SOURCE_TRUST"),
        ('[[race]]\ncall = "m:f"\n', "E_TOML"),
        (CALL + 'tagz = ["x"]\n', "E_TOML"),
        ("race = []\n", "E_REQUEST"),
        ('max_slowdown = "much"\n' + CALL, "E_REQUEST"),
        ("", "E_TOML"),
        ("[[race", "E_TOML"),
    ],
)
def test_what_is_no_suite_is_refused_with_a_code(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(text)
    with pytest.raises(InvalidRequest) as refused:
        read_suite(path)
    assert refused.value.code == code


@pytest.mark.parametrize("selection", [Selection(tags=("quik",)), Selection(only=("pars",))])
def test_a_misspelt_tag_or_name_is_refused_and_not_an_empty_suite(file: Path, selection: Selection) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_suite(file).selected(selection, "two sides")
    assert refused.value.code == "E_SUITE"


def test_a_selection_that_leaves_nothing_is_refused(file: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_suite(file).selected(Selection(tags=("models",)), "two sides")
    assert refused.value.code == "E_SUITE"


def test_a_named_race_without_the_tag_is_refused_for_the_tag(file: Path) -> None:
    for only, lacks in (("sort", "quick"), ("convnet", "quick"), ("parse", "models")):
        with pytest.raises(InvalidRequest) as refused:
            read_suite(file).selected(Selection(tags=(lacks,), only=(only,)), None)
        assert only in str(refused.value)
        assert lacks in str(refused.value)
        assert "--only" not in str(refused.value)


def test_the_published_schema_is_that_of_the_code() -> None:
    assert (TOP / FILE).read_text() == schema_text(SuiteFile)
    names = {each.name for each in msgspec.structs.fields(RaceOfSuite)}
    assert {"name", "tags", "call", "command", "inputs", "reference", "reported", "same_output"} <= names
