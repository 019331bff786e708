"""The documentation is correct and plain: its examples run, its commands parse, its names and links exist.

What CONTRIBUTING.md tells people to add can be added, in a copy of the package: a framework, a model, a scenario,
a column, an option and an output format.
"""

from __future__ import annotations

import csv
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from fairlap.cli import cli

TOP = Path(__file__).parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]
SLOW = {  # their examples race frameworks, load servers or time for seconds
    "docs/explanation/how-timing-works.md",
    "docs/how-to/check-numerical-stability.md",
    "docs/how-to/choose-a-model.md",
    "docs/how-to/compare-over-sizes.md",
    "docs/how-to/differentiate-functions.md",
    "docs/how-to/compare-scores-by-group.md",
    "docs/how-to/learn-to-act.md",
    "docs/how-to/load-a-language-model-server.md",
    "docs/how-to/load-from-several-clients.md",
    "docs/how-to/measure-generation.md",
    "docs/how-to/race-input-pipelines.md",
    "docs/how-to/race-scientific-operations.md",
    "docs/how-to/simulate-environments.md",
    "docs/how-to/solve-differential-equations.md",
    "docs/how-to/stress-a-server.md",
    "docs/tutorials/race-your-own-model.md",
    "docs/tutorials/train-to-a-score.md",
}


EXTRAS = {  # what the examples of a page need
    "docs/how-to/load-a-language-model-server.md": "httpx",
    "docs/how-to/stress-a-server.md": "httpx",
    "docs/how-to/load-from-several-clients.md": "httpx",
}


def examples(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))


def with_slow_ones_marked(pages: Iterable[Path]) -> list[Any]:
    names = [(page, str(page.relative_to(TOP))) for page in pages]
    assert {name for _, name in names} >= SLOW
    return [pytest.param(page, id=name, marks=[pytest.mark.slow] if name in SLOW else []) for page, name in names]


@pytest.mark.parametrize("page", with_slow_ones_marked(page for page in PAGES if examples(page)))
def test_the_examples_of_a_page_run_one_after_another(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if needed := EXTRAS.get(str(page.relative_to(TOP))):
        pytest.importorskip(needed, reason="`make test` installs it and runs this")
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
    from fairlap.engine.feeding import feeder

    documented = {name for name in feeder.__all__ if getattr(feeder, name).__doc__}
    page = (TOP / "docs/reference/python.md").read_text()
    assert {"Batch", "Feeder", "RawFile", "StallTimes"} <= documented
    assert documented <= set(re.findall(r"^::: fairlap\.engine\.feeding\.feeder\.(\w+)$", page, re.MULTILINE))


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


def test_every_test_that_keeps_out_an_error_of_the_gpu_code_exists() -> None:
    _, table = (TOP / "docs/explanation/fakes.md").read_text().split("## Errors that reading the real libraries found")
    named = re.findall(r"`((?:cpp/)?tests/[\w/.]+)(?:::(\w+)|: ([^`]+))`", table)
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    assert all("`" in row for row in rows[1:])
    for file, function, title in named:
        source = (TOP / file).read_text()
        assert f"def {function}(" in source if function else re.search(rf'TEST\(\s*"{re.escape(title)}"', source), file


README = TOP / "README.md"
LINKING = [README, TOP / "CHANGELOG.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").rglob("*.md"))]

AVOIDED_WORDS = ("told", "whoever", "whom", "anew", "heat", "contender")
AVOIDED = re.compile(rf"\b({'|'.join(AVOIDED_WORDS)})\b", re.IGNORECASE)
TEXT = {".css", ".html", ".js", ".json", ".md", ".py", ".pyi", ".toml"}
QUOTED: dict[str, set[str]] = {"docs/reference/models.md": {"heat"}}  # words meant as such, by the file that holds them


def texts() -> Iterator[Path]:
    yield README
    for folder in ("python", "docs"):
        yield from (path for path in sorted((TOP / folder).rglob("*")) if path.suffix in TEXT)


def lines_that_may_have_an_avoided_word(text: str) -> Iterator[tuple[int, str]]:
    """Look for the letters first, which is many times quicker than the expression."""
    found = [word for word in AVOIDED_WORDS if word in text.lower()]
    for number, line in enumerate(text.splitlines() if found else (), 1):
        lowered = line.lower()
        if any(word in lowered for word in found):
            yield number, line


def test_no_text_uses_a_word_that_is_to_be_avoided() -> None:
    found = [
        f"{path.relative_to(TOP)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in lines_that_may_have_an_avoided_word(path.read_text())
        if {word.lower() for word in AVOIDED.findall(line)} - QUOTED.get(str(path.relative_to(TOP)), set())
    ]
    assert not found, "\n".join(found)


def test_the_readme_has_at_most_120_lines_of_at_most_300_characters() -> None:
    lines = README.read_text().splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 300


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(TOP)))
def test_every_relative_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def anchors(page: Path) -> set[str]:
    """Find the anchors that GitHub and the site make of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


ADDED = ("A framework", "A model", "A scenario", "A column", "An option", "An output format")
MOST_LINES = 50  # a screen


def diffs() -> dict[str, str]:
    page = (TOP / "CONTRIBUTING.md").read_text()
    return dict(re.findall(r"^### (.*?)$.*?^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Race the new framework on the new model, with the new option and in the new format, and return the rows."""
    copy = tmp_path_factory.mktemp("copy")
    for folder in ("python", "bench_models"):  # with their bytecode, which is valid but for what changes
        shutil.copytree(TOP / folder, copy / folder, symlinks=True)
    for name in ADDED:
        applied = subprocess.run(["git", "apply", "-"], input=diffs()[name], cwd=copy, capture_output=True, text=True)
        assert applied.returncode == 0, f"{name}: {applied.stderr}"
    compare = ("compare", "sums", "--on", "plain-numpy", "--blocks", "1", "--seconds", "0.02", "--samples", "7")
    done = subprocess.run(
        [sys.executable, "-m", "fairlap", *compare, "-o", copy / "rows.tsv"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "python"), "FAIRLAP_STORE": str(copy / "store.sqlite")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with (copy / "rows.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_each_addition_is_one_diff_of_at_most_a_screen() -> None:
    assert set(diffs()) == set(ADDED)
    assert max(diff.count("\n") for diff in diffs().values()) <= MOST_LINES


def test_all_of_them_work_together(raced: list[dict[str, str]]) -> None:
    [row] = raced
    assert (row["framework"], row["workload"], row["outcome"]) == ("plain-numpy", "sums", "finished")
    assert row["judged_by"] == "99th percentile of a call"
    assert 2 <= int(row["samples"]) <= 7 * 10  # in up to ten turns, of which the first is not counted
