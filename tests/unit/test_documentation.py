"""The documentation is correct: its examples run, its commands parse, its names exist."""

from __future__ import annotations

import pkgutil
import re
import shlex
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pytest
from fairlap.cli import cli

TOP = Path(__file__).parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]
SLOW = {"docs/tutorials/race-your-own-model.md", "docs/tutorials/train-to-a-score.md"}  # their examples race frameworks


def examples(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))


def with_slow_ones_marked(pages: Iterable[Path]) -> list[Any]:
    names = [(page, str(page.relative_to(TOP))) for page in pages]
    assert {name for _, name in names} >= SLOW
    return [pytest.param(page, id=name, marks=[pytest.mark.slow] if name in SLOW else []) for page, name in names]


@pytest.mark.parametrize("page", with_slow_ones_marked(page for page in PAGES if examples(page)))
def test_the_examples_of_a_page_run_one_after_another(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(examples(page), str(page), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out


COMMANDS = sorted(
    {
        line.removeprefix("$ ").partition("  #")[0].strip()
        for page in PAGES
        for block in re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line.removeprefix("$ ").startswith("fairlap ")
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_in_the_documentation_is_understood(line: str) -> None:
    arguments = shlex.split(line)[1:]
    group: click.Command = cli
    context = click.Context(cli, info_name="fairlap")
    while isinstance(group, click.Group) and arguments and not arguments[0].startswith("-"):
        found = group.get_command(context, arguments[0])
        assert found is not None, arguments[0]
        group, arguments = found, arguments[1:]
    if {"--help", "-h"} & set(arguments):
        return
    group.make_context("fairlap", arguments, resilient_parsing=False)


@pytest.mark.parametrize(
    "name", re.findall(r"^::: (fairlap[\w.]+)$", (TOP / "docs/reference/python.md").read_text(), re.MULTILINE)
)
def test_every_name_of_the_python_reference_exists(name: str) -> None:
    pkgutil.resolve_name(name)


@pytest.mark.sanitized
def test_the_reference_lists_every_documented_name_of_the_feeder() -> None:
    from fairlap.engine import feeder

    documented = {name for name in feeder.__all__ if getattr(feeder, name).__doc__}
    page = (TOP / "docs/reference/python.md").read_text()
    assert {"Batch", "Feeder", "RawFile", "StallTimes"} <= documented
    assert documented <= set(re.findall(r"^::: fairlap\.engine\.feeder\.(\w+)$", page, re.MULTILINE))


@pytest.mark.sanitized
def test_every_example_program_of_the_documentation_compiles() -> None:
    for program in (TOP / "docs" / "examples").glob("*.py"):
        compile(program.read_text(), str(program), "exec")


ARCHITECTURE = (TOP / "docs/explanation/architecture.md").read_text()


def test_the_drawn_rooms_are_the_layers_that_are_checked() -> None:
    layers = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    [drawing] = re.findall(r"^```\n(.*?)^  -+$", ARCHITECTURE, re.MULTILINE | re.DOTALL)
    drawn = [room for line in drawing.splitlines() for room in line[:40].split()]
    assert [f"fairlap.{room}" for room in drawn] == layers


def test_every_file_that_the_architecture_names_exists() -> None:
    named = re.findall(r"`([a-z_/]+(?:/|\.py|\.cpp))`", ARCHITECTURE)
    assert len(named) > 30
    folders = (TOP, TOP / "python/fairlap", TOP / "cpp")
    assert not [each for each in named if not any((folder / each).exists() for folder in folders)]
