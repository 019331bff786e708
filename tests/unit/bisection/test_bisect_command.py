"""``fairlap bisect`` on real repositories, with races whose outcome is known; what really races is in integration."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import Result
from command_line import invoke, refusal
from fairlap.bisection import searching
from fairlap.bisection.bisect_request import BisectRequest
from fairlap.bisection.bisection import Bisection
from fairlap.bisection.contestants import fields_between
from fairlap.bisection.races import Raced
from fairlap.errors import FairlapError
from fairlap.judgement.judgement import Judgement, decided
from fairlap.judgement.race_of_sides import failure
from fairlap.machine.files.user_folders import work_cache
from fairlap.request.names import Contestants
from fairlap.scenarios.process_result import ProcessResult
from histories_of_commits import git, history_of
from raced_commits import raced_at

BLOCKS_OF_ENDS = 8
Level = Callable[[int], float]


class Races:
    """In place of real ones: ``level`` has the log ratio of each commit, by the number in its tree."""

    def __init__(self, level: Level) -> None:
        self.level, self.random = level, np.random.default_rng(7)
        self.between: list[tuple[int, int]] = []
        self.failing: dict[int, Judgement] = {}
        self.failing_at: dict[int, Judgement] = {}  # by the number of the race
        self.interrupted_at = 0
        self.trees: set[Path] = set()

    def __call__(self, request: BisectRequest, earlier: Path, later: Path, blocks: int | None, *_: Any) -> Raced:
        self.trees |= {earlier, later}
        first, last = (int((each / "hot.py").read_text().split()[2]) for each in (earlier, later))
        self.between.append((first, last))
        if len(self.between) == self.interrupted_at:
            raise KeyboardInterrupt
        if last in self.failing:
            return Raced((), self.failing[last])
        if len(self.between) in self.failing_at:
            return Raced((), self.failing_at[len(self.between)])
        level = self.level(last) - self.level(first)
        logs = level + self.random.normal(0, 0.01, blocks or BLOCKS_OF_ENDS)
        return raced_at(level, logs)


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch) -> Races:
    found = Races(lambda number: 0.26 if number >= 11 else 0.0)
    monkeypatch.setattr(searching, "race", found)
    return found


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "repository"
    history_of(folder, 16, slow_from=11, broken={8})
    return folder


@pytest.fixture
def repository(history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    copy = shutil.copytree(history, tmp_path / "repository")
    git(copy, "status")  # looks at the copied files once, and knows them
    return copy


PREPARE = ("--prepare", "grep fine state")  # which starts a program in each tree, and fails in that of commit 8


def run(repository: Path, *options: object, bad: str = "HEAD") -> Result:
    ends = ("--good", "good", "--bad", bad, "--repository", repository, "--call", "hot:fn")
    return invoke("bisect", *ends, "-q", *options)


def bisected(repository: Path, *options: object, bad: str = "HEAD") -> Bisection:
    done = run(repository, "--json", *options, bad=bad)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    found = msgspec.json.decode(done.stdout, type=Bisection)
    assert done.exit_code == found.exit_status
    return found


def kept() -> list[Path]:
    return sorted(work_cache().rglob("*")) if work_cache().exists() else []


def test_the_commit_is_named_and_one_that_does_not_build_is_skipped(repository: Path, races: Races) -> None:
    found = bisected(repository, *PREPARE)
    assert (found.outcome, found.exit_status) == ("found", 0)
    assert found.commit is not None
    assert found.commit.commit == git(repository, "rev-parse", "HEAD~5")
    assert found.commit.subject == "change 11"
    assert found.commit.author_date == git(repository, "log", "-1", "--format=%aI", "HEAD~5")
    assert found.probability >= found.sure == 0.99
    assert races.between[0] == (0, 16)
    assert races.between[-1] == (10, 11)
    assert found.step is not None
    assert found.step.value == pytest.approx(np.exp(0.26))
    assert found.step.low is not None
    assert 1 < found.step.low < found.step.value
    assert found.another_step is None
    [skipped] = [each for each in found.tried if each.ratio is None]
    assert (skipped.position, skipped.code) == (8, "E_PREPARE")
    assert found.races == len([each for each in races.between if each[0] == 0])


def test_the_checkout_is_untouched_and_nothing_is_left_behind(repository: Path, races: Races) -> None:
    (repository / "hot.py").write_text("not committed\n")
    before = sorted((path, path.stat().st_mtime_ns) for path in repository.rglob("*"))
    assert bisected(repository).outcome == "found"
    assert sorted((path, path.stat().st_mtime_ns) for path in repository.rglob("*")) == before
    assert not any(tree.exists() for tree in races.trees)
    assert not [path for path in kept() if path.is_file()]


def test_an_interrupted_search_goes_on_from_its_races_and_trees(repository: Path, races: Races) -> None:
    races.interrupted_at = 4
    done = run(repository, *PREPARE)
    assert done.exit_code == 130
    before = list(races.between)
    built = [tree for tree in races.trees if tree.exists()]
    assert built
    assert not git(repository, "status", "--short")
    found = bisected(repository, *PREPARE)
    assert found.outcome == "found"
    assert races.between[len(before)] == before[-1]  # the race that was interrupted, and none before it
    assert [each for each in races.between if each == (0, 16)] == [(0, 16)]
    assert len(set(races.between)) == len(races.between) - 1
    assert not [path for path in kept() if path.is_file()]


def test_the_same_search_does_not_run_twice_at_once(repository: Path, races: Races) -> None:
    codes: list[str] = []

    def level(number: int) -> float:
        if len(races.between) == 1 and not codes:
            error = run(repository).exception
            codes.append(error.code if isinstance(error, FairlapError) else str(error))
        return 0.26 if number >= 11 else 0.0

    races.level = level
    assert bisected(repository).outcome == "found"
    assert codes == ["E_BISECT"]


@pytest.mark.slow
def test_an_undecided_search_keeps_its_races_for_more_of_them(repository: Path, races: Races) -> None:
    found = bisected(repository, "--races", 2)
    assert (found.outcome, found.exit_status, found.commit) == ("undecided", 3, None)
    assert len(found.suspects) > 1
    assert bisected(repository).outcome == "found"
    assert [each for each in races.between if each == (0, 16)] == [(0, 16)]


def test_ends_that_cannot_be_told_apart_end_it_at_once(repository: Path, races: Races) -> None:
    races.level = lambda number: 0.0
    found = bisected(repository)
    assert (found.outcome, found.exit_status, len(races.between)) == ("no_step", 1, 1)
    assert found.ends is not None


def test_a_bad_end_that_is_faster_is_no_step(repository: Path, races: Races) -> None:
    races.level = lambda number: -0.3 if number > 4 else 0.0
    assert bisected(repository).outcome == "no_step"


@pytest.mark.slow
def test_commits_that_fail_or_answer_otherwise_are_skipped_and_the_suspects_named(
    repository: Path, races: Races
) -> None:
    races.failing = {
        9: decided("discard", "change_failed", "crash", code="E_CRASH"),
        10: decided("discard", "wrong_answers", "wrong", code="E_OUTPUT"),
    }
    found = bisected(repository, *PREPARE)
    assert (found.outcome, found.exit_status) == ("several_suspects", 3)
    assert [each.subject for each in found.suspects] == ["change 8", "change 9", "change 10", "change 11"]
    assert races.between[-1] == (7, 11)
    assert {each.code for each in found.tried} == {"", "E_CRASH", "E_OUTPUT", "E_PREPARE"}


@pytest.mark.slow
def test_many_broken_commits_are_not_sure_before_the_one_before_them_is_raced(repository: Path, races: Races) -> None:
    crash = decided("discard", "change_failed", "crash", code="E_CRASH")
    races.failing = dict.fromkeys(range(2, 11), crash)
    found = bisected(repository, "--sure", "60%")
    assert found.outcome == "several_suspects"
    assert (0, 1) in races.between
    assert races.between[-1] == (1, 11)


def test_a_bad_end_that_fails_later_is_raced_again(repository: Path, races: Races) -> None:
    races.failing_at = {3: decided("discard", "change_failed", "crash", code="E_CRASH")}
    found = bisected(repository, "--blocks", 12)
    assert found.outcome == "found"
    assert races.between[:4].count((0, 16)) == 3


def test_a_bad_end_that_fails_is_an_error(repository: Path, races: Races) -> None:
    races.failing = {16: decided("discard", "change_failed", "crash", code="E_CRASH")}
    error = run(repository).exception
    assert isinstance(error, FairlapError)
    assert error.code == "E_CRASH"


def test_a_good_end_that_cannot_be_raced_is_named_as_that(
    repository: Path, races: Races, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = ProcessResult(0, 0, "base", "mlp", "as-found", "failed")
    process.message = "cannot import hot (in import)"

    def fail(*_: object) -> Raced:
        failure([process], {})
        raise AssertionError

    monkeypatch.setattr(searching, "race", fail)
    error = run(repository).exception
    assert isinstance(error, FairlapError)
    assert (error.code, str(error)) == ("E_BASELINE", "the good end cannot be raced: cannot import hot (in import)")


def test_an_end_that_does_not_build_is_an_error(repository: Path, races: Races) -> None:
    error = run(repository, *PREPARE, bad="HEAD~8").exception
    assert isinstance(error, FairlapError)
    assert error.code == "E_PREPARE"
    assert not races.between


def test_a_commit_that_its_last_race_does_not_confirm_is_not_named(repository: Path, races: Races) -> None:
    raced = races.level

    def level(number: int) -> float:
        return raced(number) if races.between[-1][0] == 0 else 0.0

    races.level = level
    found = bisected(repository)
    assert (found.outcome, found.exit_status, found.commit) == ("undecided", 3, None)
    assert found.suspects[0].subject == "change 11"
    races.level, before = raced, len(races.between)
    again = bisected(repository, "--blocks", 20)
    assert (again.outcome, len(races.between) - before) == ("found", 1)


@pytest.mark.slow
def test_a_speed_up_on_the_way_is_reported_as_another_step(repository: Path, races: Races) -> None:
    races.level = lambda number: 0.0 if number < 4 else -0.2 if number < 11 else 0.26
    found = bisected(repository)
    assert found.commit is not None
    assert found.commit.subject == "change 11"
    assert found.another_step is not None
    assert found.another_step.ratio == pytest.approx(np.exp(-0.2), rel=0.02)
    assert found.another_step.good == git(repository, "rev-parse", "good")
    assert found.another_step.bad == git(repository, "rev-parse", "HEAD~6")
    assert "--good" in run(repository).stdout


def test_what_a_merge_brought_counts_as_the_merge(repository: Path, races: Races) -> None:
    git(repository, "checkout", "--quiet", "-b", "side", "good")
    for number in (20, 21, 22):
        (repository / "hot.py").write_text(f"VERSION = {number}\n")
        git(repository, "commit", "--quiet", "-am", f"side {number}")
    git(repository, "checkout", "--quiet", "-b", "trunk", "good")
    for number in (30, 31):
        (repository / "other.py").write_text(f"{number}\n")
        (repository / "hot.py").write_text(f"VERSION = {number}\n")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", f"trunk {number}")
    git(repository, "merge", "--quiet", "--no-ff", "-X", "theirs", "-m", "merge side", "side")
    races.level = lambda number: 0.3 if 20 <= number < 30 else 0.0
    found = bisected(repository, bad="trunk")
    assert found.commits == 3
    assert found.commit is not None
    assert (found.commit.subject, found.commit.merges) == ("merge side", True)


def test_no_hook_or_filter_of_the_repository_runs(repository: Path, races: Races, tmp_path: Path) -> None:
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/PWNED\ncat\n")
    script.chmod(0o755)
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (repository / ".git/hooks" / hook).symlink_to(script)
    for name in ("core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "uploadpack.packObjectsHook"):
        git(repository, "config", name, str(script))
    (repository / ".git/info/attributes").write_text("*.py filter=evil\n")
    assert bisected(repository).outcome == "found"
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--good", "gone"),
        ("--good", "--upload-pack=evil"),
        ("--good", "HEAD"),
        ("--good", "HEAD", "--bad", "good"),
        ("--command", "./run"),
        ("--same-output",),
        ("--sure", "40%"),
        ("--only", "time_fn"),
        ("--suite", "benchmarks"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_runs(
    repository: Path, races: Races, options: tuple[str, ...]
) -> None:
    given = {"--good": "good", "--bad": "HEAD", "--call": "hot:fn", "--repository": str(repository)}
    flags = [each for each in options if each == "--same-output"]
    given |= dict(zip(options[::2], options[1::2], strict=False))
    assert refusal("bisect", *(f"{name}={value}" for name, value in given.items()), *flags).code == "E_BISECT"
    assert not races.between


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    options = ("--good", "a", "--bad", "b", "--call", "hot:fn", "--repository", tmp_path)
    assert refusal("bisect", *options).code == "E_BISECT"


BENCHMARKS = """
import hot

def time_fn():
    hot.fn()

def track_fn():
    return hot.fn()

def time_gone():
    hot.gone()
"""


@pytest.fixture
def suite(repository: Path) -> Path:
    (repository / "benchmarks").mkdir()
    (repository / "benchmarks" / "__init__.py").touch()
    (repository / "benchmarks" / "speed.py").write_text(BENCHMARKS)
    return repository / "benchmarks"


def of_suite(repository: Path, suite: Path, *options: object) -> Result:
    ends = ("--good", "good", "--bad", "HEAD", "--repository", repository)
    return invoke("bisect", *ends, "--suite", suite, "-q", "--json", *options)


@pytest.mark.slow_but("speed.time_fn")
@pytest.mark.parametrize(("only", "worse"), [("speed.time_fn", "slower"), ("track", "worse")])
def test_a_benchmark_of_asv_that_no_commit_has_is_searched_with_the_code_of_each(
    repository: Path, suite: Path, races: Races, monkeypatch: pytest.MonkeyPatch, only: str, worse: str
) -> None:
    raced: list[Contestants] = []

    def race(request: BisectRequest, earlier: Path, later: Path, *rest: Any) -> Raced:
        raced.append(fields_between(request, {"base": earlier, "change": later})["contestants"])
        return races(request, earlier, later, *rest)

    monkeypatch.setattr(searching, "race", race)
    found = msgspec.json.decode(of_suite(repository, suite, "--only", only).stdout, type=Bisection)
    assert (found.outcome, worse in found.message) == ("found", True)
    assert found.commit is not None
    assert found.commit.subject == "change 11"
    for contestants in raced:
        sides = [dict(each.options) for each in contestants]
        assert {each["name"] for each in sides} == {only if "." in only else "speed.track_fn"}
        assert {each["suite"] for each in sides} == {str(suite)}
        assert len({each["path"] for each in sides}) == 2
        assert {Path(each["path"]) for each in sides} <= races.trees


@pytest.mark.slow
def test_an_edited_benchmark_is_another_search(repository: Path, suite: Path, races: Races) -> None:
    only = ("--only", "speed.time_fn")
    races.interrupted_at = 4
    assert of_suite(repository, suite, *only).exit_code == 130
    (suite / "speed.py").write_text(BENCHMARKS + "\n# another\n")
    assert of_suite(repository, suite, *only).exit_code == 0
    assert [each for each in races.between if each == (0, 16)] == [(0, 16)] * 2


@pytest.mark.parametrize(
    "options",
    [(), ("--only", "time"), ("--only", "no_such"), ("--only", "time_fn", "--quantity", "memory_peak"),
     ("--only", "time_fn", "--inputs", "m:draw"), ("--only", "time_fn", "--call", "hot:fn")],
)  # fmt: skip
def test_one_benchmark_is_named_and_decides_its_own_options(
    repository: Path, suite: Path, races: Races, options: tuple[str, ...]
) -> None:
    error = of_suite(repository, suite, *options).exception
    assert isinstance(error, FairlapError)
    assert error.code in ("E_BISECT", "E_SUITE")
    assert not races.between
