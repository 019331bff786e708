"""A race of a judge shows those that wait for it how long it may take."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from fairlap.machine.race_lock.holder import SETTING, Holder, races_running
from processes_seen import wait_until
from suites import folders_of_callables, suite_of_calls

_WITHIN_S = 60.0
_CALL = ("--call", "pk.hot:parse")
_SUITE = ("--suite", "suite.toml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folders_of_callables(tmp_path, {"parse": 10, "sort": 10}, {"parse": 11, "sort": 10})
    (tmp_path / "suite.toml").write_text(suite_of_calls(("parse", "sort")))
    monkeypatch.setenv(SETTING, str(tmp_path))
    return tmp_path


def holder_while_it_judges(folder: Path, *options: str) -> Holder:
    """Find the race in the kernel's list, as another race that waits for it does."""
    command = [sys.executable, "-m", "fairlap", "judge", "--base", "base", "--change", "change", "--threads", "1"]
    process = subprocess.Popen([*command, *options, "-q"], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        return wait_until(races_running, _WITHIN_S, running=process)[0]
    finally:
        process.terminate()
        process.wait(_WITHIN_S)


@pytest.mark.slow_but("options0")
@pytest.mark.parametrize(
    ("options", "longest_s"),
    [
        ((*_CALL, "--budget", "40s"), 40.0),
        (_CALL, 150.0),  # the longest of a race without a budget
        ((*_SUITE, "--budget", "40s"), 40.0),
        (_SUITE, 300.0),  # as long for each of two benchmarks
    ],
)
def test_a_race_that_waits_for_a_judge_is_shown_how_long_it_may_take(
    folder: Path, options: Sequence[str], longest_s: float
) -> None:
    holder = holder_while_it_judges(folder, *options)
    assert holder.began is not None
    assert holder.ends is not None
    assert holder.ends - holder.began == pytest.approx(longest_s, abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", [_CALL, _SUITE], ids=["call", "suite"])
def test_of_a_number_of_blocks_it_is_not_known(folder: Path, benchmark: Sequence[str]) -> None:
    assert holder_while_it_judges(folder, *benchmark, "--blocks", "50").ends is None
