"""A kind of source of an installed package is raced, listed and refused as fairlap's own kinds are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import SHORT, error_code
from command_line import here as run
from example_installed import install_example
from fairlap.launch.environments import linked_packages
from fairlap.models.sources.registry import kinds

pytestmark = pytest.mark.sanitized


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    install_example(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "m.linear.json"
    file.write_text(json.dumps({"matrix": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]]}))
    kinds.cache_clear()  # those of another test lack the example's
    yield file
    kinds.cache_clear()


def test_it_is_raced_with_all_checks(model: Path, tmp_path: Path) -> None:
    on = "example,example:cached"
    done = run("compare", model, "--on", on, "--batch", "4", *SHORT, "-o", tmp_path / "rows.jsonl")
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())}
    right = rows["example"]
    assert (right["outcome"], right["route"], right["batch"]) == ("finished", "native", 4)
    assert 0 < right["error_relative"] < 1e-6
    assert rows["example:cached"]["outcome"] == "disqualified"


@pytest.mark.slow
def test_its_routes_are_listed(model: Path) -> None:
    done = run("list", "routes", model, "--json")
    assert done.returncode == 0, done.stderr
    routes = {each["framework"]: each for each in json.loads(done.stdout)["routes"]}
    assert routes["example"]["route"] == "native"
    assert routes["torch"]["why_not"] == "a linear file is not for PyTorch"
    assert routes["jax"]["why_not"]


def test_its_refusals_are_one_line_and_its_ending_is_named(model: Path) -> None:
    model.write_text("{}")
    done = run("compare", model, "--on", "example", "--no-store", "--quiet")
    assert (done.returncode, error_code(done), done.stderr.count("\n")) == (2, "E_SOURCE", 1)
    done = run("compare", "m.lineer", "--on", "example", "--no-store", "--quiet")
    assert done.returncode == 2
    assert ".linear.json" in done.stderr


def test_environments_can_import_it(model: Path) -> None:
    assert "example_source.py" in {path.name for path in linked_packages()}
