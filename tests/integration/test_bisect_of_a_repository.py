"""``fairlap bisect`` from beginning to end: a callable that is 30 % slower from one commit on, in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from fairlap.bisection.bisection import Bisection
from histories_of_commits import git, history_of
from interrupted_bisect import interrupt_after_a_race

pytestmark = pytest.mark.slow

LIMIT_S = 280.0
COMMITS, SLOW_FROM = 16, 11


@pytest.mark.timeout(600)
def test_a_slow_commit_is_named_after_ctrl_c_and_with_one_that_does_not_build(tmp_path: Path) -> None:
    repository, cache = tmp_path / "repository", tmp_path / "cache"
    hashes = history_of(repository, COMMITS, slow_from=SLOW_FROM, broken={8})
    variables = {**os.environ, "FAIRLAP_CACHE": str(cache)}
    command = [
        sys.executable, "-m", "fairlap", "bisect", "--good", "good", "--bad", "HEAD", "--call", "hot:fn",
        "--prepare", "grep -q fine state", "--threads", "1", "--seconds", "100ms", "--json", "-q",
    ]  # fmt: skip
    first = subprocess.Popen(command, cwd=repository, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    races = interrupt_after_a_race(first, cache, LIMIT_S)

    second = subprocess.run(command, cwd=repository, env=variables, capture_output=True, timeout=LIMIT_S, check=False)
    found = msgspec.json.decode(second.stdout, type=Bisection)
    assert (second.returncode, found.outcome) == (0, "found")
    assert found.commit is not None
    assert found.commit.commit == hashes[SLOW_FROM]
    assert found.step is not None
    assert found.step.value == pytest.approx(1.3, rel=0.15)
    assert [each.position for each in found.tried if each.code == "E_PREPARE"] == [8]
    [bad] = [each for each in found.tried if each.position == COMMITS]
    assert bad.blocks >= len(races[0].log_ratios)
    assert not git(repository, "status", "--short")
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not list(cache.rglob("hot.py"))


@pytest.mark.timeout(900)
def test_a_commit_that_starts_more_slowly_is_named_by_the_time_to_its_first_answer(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "--quiet")
    hashes = []
    for number in range(4):
        slept_s = 2.0 if number >= 2 else 0.1
        (repository / "hot.py").write_text(
            f"import time\ntime.sleep({slept_s})  # {number}\n\ndef fn():\n    return 1\n"
        )
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", f"change {number}")
        hashes.append(git(repository, "rev-parse", "HEAD"))
    command = [
        sys.executable, "-m", "fairlap", "bisect", "--good", hashes[0], "--bad", "HEAD", "--call", "hot:fn",
        "--quantity", "time_to_first", "--threads", "1", "--seconds", "20ms", "--json", "-q",
    ]  # fmt: skip
    variables = {**os.environ, "FAIRLAP_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=repository, env=variables, capture_output=True, timeout=800, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = msgspec.json.decode(done.stdout, type=Bisection)
    assert (found.outcome, found.quantity) == ("found", "time_to_first")
    assert found.commit is not None
    assert found.commit.commit == hashes[2]
    assert found.step is not None
    assert found.step.value > 1.5
