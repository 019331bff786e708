"""The simulated experiments of the trust suite at a size for every change.

The stated 10,000 trials run in `python -m tests.trust.suite`, or here with FAIRLAP_TRUST_FULL=1.
"""

import json
import os
from pathlib import Path

import pytest
from thorough import thorough_where

from .figure import Figure, allowed_share
from .rejected_rules import rejected_rules
from .suite import EXPERIMENTS, KNOWN_UNMET, as_markdown, main

FULL = os.environ.get("FAIRLAP_TRUST_FULL") == "1"


LONG = [name for name in EXPERIMENTS if name.startswith(("9 with looks", "family intervals", "4 adaptive stopping"))]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", thorough_where(LONG.__contains__, EXPERIMENTS))
def test_every_figure_of_the_experiment_meets_its_threshold(name: str) -> None:
    experiment, full_trials, small_trials = EXPERIMENTS[name]
    figures = experiment(full_trials if FULL else small_trials)
    assert figures
    unmet = [figure for figure in figures if not figure.passed]
    assert [str(figure) for figure in unmet if (figure.experiment, figure.case) not in KNOWN_UNMET] == []


@pytest.mark.parametrize(("trials", "allowed"), [(10_000, 551), (400, 31), (200, 18)])
def test_the_allowed_shares_are_the_stated_ones(trials: int, allowed: int) -> None:
    assert allowed_share(trials) == allowed / trials
    assert Figure("x", "", "", allowed, trials, high=allowed_share(trials)).passed
    assert not Figure("x", "", "", allowed + 1, trials, high=allowed_share(trials)).passed


def test_the_rules_that_were_rejected_would_be_caught_by_the_same_threshold() -> None:
    for figure in rejected_rules(1000):
        assert figure.rate > allowed_share(1000), figure.what


def test_the_suite_writes_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missed = Figure("9", "a case", "found", 3, 4, low=0.8)
    monkeypatch.setattr(
        "tests.trust.suite.EXPERIMENTS" if __name__.startswith("tests.") else "trust.suite.EXPERIMENTS",
        {"one": (lambda trials: [Figure("1", "c", "w", 1, trials, high=0.5), missed], 100, 10)},
    )
    assert main(["--out", str(tmp_path), "--small"]) == 1
    rows = json.loads((tmp_path / "trust.json").read_text())
    assert [(row["trials"], row["passed"]) for row in rows] == [(10, True), (4, False)]
    table = (tmp_path / "trust.md").read_text()
    assert "| 9 | a case | found | 3 / 4 | 75.00 % | at least 80.00 % | **no** |" in table
    assert as_markdown([missed]).count("\n") == 3
