"""Commands over values of parameters: one contestant for each combination, as hyperfine's scans have."""

from __future__ import annotations

import json

import msgspec
import pytest
from command_line import output, refusal
from fairlap.cli.options.command_parameters import with_parameters
from fairlap.errors import InvalidRequest
from fairlap.request.commands import CODE, Command


def runs(commands: dict[str, str], *parameters: str) -> dict[str, str]:
    own = Command("true", package="./a.whl", folder="folder", reported="number")
    given = [(name, msgspec.structs.replace(own, run=run)) for name, run in commands.items()]
    found = with_parameters(given, parameters)
    assert all(msgspec.structs.replace(command, run="true") == own for _, command in found)
    return {name: command.run for name, command in found}


def test_every_combination_is_a_command_of_its_own() -> None:
    given = {"sort": "sort -S {size} --parallel={threads} {size}", "plain": "sort f"}
    assert runs(given, "threads=1,2", "size=1M,50%") == {
        "sort.threads-1.size-1M": "sort -S 1M --parallel=1 1M",
        "sort.threads-1.size-50": "sort -S 50% --parallel=1 50%",
        "sort.threads-2.size-1M": "sort -S 1M --parallel=2 1M",
        "sort.threads-2.size-50": "sort -S 50% --parallel=2 50%",
        "plain": "sort f",
    }


def test_ranges_are_those_of_axes_and_texts_stay() -> None:
    assert list(runs({"z": "gzip -{level}"}, "level=1..9:+4").values()) == ["gzip -1", "gzip -5", "gzip -9"]
    assert list(runs({"z": "gzip -{level}"}, "level=7..9").values()) == ["gzip -7", "gzip -8", "gzip -9"]
    assert list(runs({"z": "cat {file}"}, "file=../a.txt,b.txt").values()) == ["cat ../a.txt", "cat b.txt"]
    assert runs({"z": "gzip -{level}"}) == {"z": "gzip -{level}"}  # without parameters nothing is replaced


@pytest.mark.parametrize(
    "parameters",
    [("size=1",), ("level",), ("level=",), ("level=1,,2",), ("level=1,1",), ("level=1", "level=2"), ("1=2",),
     ("report=1",), ("level=1..99",), ("level=9..1",)],
)  # fmt: skip
def test_what_cannot_be_put_in_is_refused(parameters: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest):
        runs({"gzip": "gzip -{level} {report}"}, *parameters)


def test_values_that_make_one_name_are_refused() -> None:
    options = ("--command", "a=true {v}", "--parameter", "v=x/y,x-y")
    assert refusal("compare", *options).code == CODE


def test_they_race_as_contestants() -> None:
    options = ("--command", "gzip=gzip -{level} -c f", "--parameter", "level=1,9", "--dry-run", "--json")
    plan = json.loads(output("compare", *options))
    assert [each["text"] for each in plan["contestants"]] == ["gzip.level-1", "gzip.level-9"]
