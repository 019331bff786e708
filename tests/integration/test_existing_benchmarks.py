"""``fairlap suite run`` on a folder of asv, between two commits of its project, in fresh processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_suites import asv_folder, commit, project, pytest_folder
from command_line import fairlap
from published_schemas import checked

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def repository(where: Path, steps: int, iterations: int, megabytes: int) -> None:
    """Commit a base with 20 additions for each item, and a change."""
    project(where, steps=20)
    commit(where)
    project(where, steps=steps, iterations=iterations, megabytes=megabytes)
    asv_folder(where)
    pytest_folder(where)
    commit(where)


def raced(where: Path, suite: str, *only: str) -> tuple[int, dict[str, str]]:
    names = [word for each in only for word in ("--only", each)]
    options = ("--threads", "1", "--max-slowdown", "10%", "-q", "--no-store", "--json")
    sides = ("--base", "HEAD~1", "--change", "HEAD")
    done = fairlap("suite", "run", suite, *sides, *names, *options, cwd=where, timeout_s=800)
    found = checked(done.stdout)
    return done.returncode, {race["name"]: race["findings"][0]["status"] for race in found["races"]}


TIMES = ("time_function$", "time_elsewhere$")


def test_what_a_commit_made_slower_or_larger_is_found_and_nothing_else(tmp_path: Path) -> None:
    repository(tmp_path, steps=26, iterations=4, megabytes=2)
    status, found = raced(tmp_path, "benchmarks", *TIMES, "track_", "peakmem_")
    assert (status, found) == (
        1,
        {
            "suite.time_function": "slower",
            "suite.time_elsewhere": "passed",
            "suite.Cached.track_iterations": "slower",
            "suite.PeakMemSuite.peakmem_hold": "slower",
        },
    )


def test_equal_commits_pass(tmp_path: Path) -> None:
    repository(tmp_path, steps=20, iterations=3, megabytes=1)
    (tmp_path / "hot" / "notes.txt").write_text("another commit\n")
    commit(tmp_path)
    status, found = raced(tmp_path, "benchmarks", *TIMES, "track_", "peakmem_")
    assert (status, set(found.values())) == (0, {"passed"})


def test_tests_of_pytest_benchmark_find_it_too(tmp_path: Path) -> None:
    repository(tmp_path, steps=26, iterations=3, megabytes=1)
    status, found = raced(tmp_path, "tests", "test_solve", "test_pedantic")
    assert (status, set(found.values())) == (1, {"slower"})


TRACKED = ("--suite", "benchmarks", "--only", "track_iterations", "--threads", "1", "-q", "--json")


def test_a_change_is_kept_by_what_a_benchmark_of_asv_returns(tmp_path: Path) -> None:
    asv_folder(project(tmp_path / "base", iterations=4).parent)
    project(tmp_path / "change", iterations=3)
    done = fairlap("judge", "--base", "base", "--change", "change", *TRACKED, cwd=tmp_path, timeout_s=800)
    found = checked(done.stdout)
    assert (done.returncode, found["decision"]) == (0, "keep")
    assert found["speedup"] == pytest.approx(4 / 3)
    [benchmark] = found["benchmarks"]
    assert benchmark["name"] == "suite.Cached.track_iterations"


def test_the_commit_is_found_that_changed_what_a_benchmark_of_asv_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    repository = tmp_path / "repository"
    hashes = []
    for number in range(4):
        project(repository, iterations=4 if number >= 2 else 3)
        (repository / "number.txt").write_text(str(number))
        hashes.append(commit(repository))
    asv_folder(repository)
    done = fairlap("bisect", "--good", hashes[0], "--bad", hashes[3], *TRACKED, cwd=repository, timeout_s=800)
    found = checked(done.stdout)
    assert (done.returncode, found["outcome"], found["commit"]["commit"]) == (0, "found", hashes[2])
    assert found["step"]["value"] == pytest.approx(4 / 3)
