"""``fairlap pull-request --suite``: all benchmarks of a suite between the base and the change, and one comment."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import invoke
from comment_server import TOKEN, comment_server
from suites import folders_of_callables, given_races, suite_of_calls

NAMES = ("parse", "sort", "join")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folders_of_callables(tmp_path, dict.fromkeys(NAMES, 10), dict.fromkeys(NAMES, 10))
    change = tmp_path / "change"
    (change / "suite.toml").write_text(suite_of_calls(NAMES, 'max_slowdown = "5%"\nthreads = 1\n'))
    monkeypatch.chdir(change)
    return change


@pytest.mark.parametrize(("given", "status"), [({"sort": 1.2}, 1), ({}, 0)])
def test_one_comment_has_the_verdicts_of_all_benchmarks_first(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, float], status: int
) -> None:
    given_races(monkeypatch, change=given)
    with comment_server() as server:
        variables = {"GITHUB_API_URL": server.address, "GITHUB_REPOSITORY": "octo/parser", "GITHUB_TOKEN": TOKEN}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        suite = ("--suite", "suite.toml", "--base", "../base", "--number", 7)
        done = invoke("pull-request", *suite, "--prepare", "touch prepared", "-o", "suite.json")
        [comment] = server.comments
    assert done.exit_code == status, done.output
    lines = comment["body"].splitlines()
    assert all(any(name in line for line in lines) for name in NAMES)
    if given:
        first = next(line for line in lines if line.startswith("- "))
        assert first.startswith("- slower")
        assert "sort" in first
    assert (checkout / "prepared").exists()
    assert (checkout / "suite.json").exists()


def test_what_the_suite_decides_is_refused_as_an_option(checkout: Path) -> None:
    for options in (("--call", "pk.hot.parse"), ("--max-slowdown", "3%"), ("--blocks", 3)):
        done = invoke("pull-request", "--suite", "suite.toml", "--base", "../base", "--no-comment", *options)
        assert (done.exit_code, "[E_PULL_REQUEST]" in done.stderr) == (3, True), done.output
