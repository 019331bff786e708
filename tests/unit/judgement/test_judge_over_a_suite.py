"""``fairlap judge --suite``: the decision, what it names, and what the ledger remembers of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import fairlap
import msgspec
import pytest
from benchmark_suites import asv_folder, project
from command_line import invoke, refusal
from fairlap.errors import FairlapError
from fairlap.judgement import race_of_suite
from fairlap.judgement.judge_request import Benchmark
from fairlap.judgement.judgement import Judgement
from fairlap.judgement.ledger import Side, Try, level_of_share, read_ledger
from fairlap.judgement.race_of_sides import Question
from fairlap.judgement.race_of_suite import PlannedSuite, judged_suite
from fairlap.pull_request.checkouts import NoBaseline
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.verdict import ONE_SIDE
from saved_runs import saved_run
from suites import folders_of_callables, suite_of_calls

NAMES = ("parse", "sort", "join")
BOUND = 0.03
ALONE = Question(0.0, ONE_SIDE)


def runs(speedups: Mapping[str, float], blocks: int = 16) -> dict[str, Run]:
    return {
        name: saved_run({"base": 1e6, "change": 1e6 / each}, blocks=blocks, seed=place)
        for place, (name, each) in enumerate(speedups.items())
    }


def shown(raced: Mapping[str, Run], question: Question = ALONE) -> Judgement:
    races = cast("dict[str, Race]", raced)  # a run has the plan and the processes of a race
    suite = PlannedSuite({name: each.plan for name, each in raced.items()}, dict.fromkeys(raced, BOUND), True)
    return judged_suite(suite, races, question, ended=True, seconds=24.0)


@pytest.mark.parametrize(
    ("speedups", "blocks", "decision", "reason"),
    [
        ((1.2, 1.1, 1.0), 16, "keep", "faster"),
        ((1.5, 1.5, 0.8), 16, "discard", "benchmark_slower"),
        ((0.9, 0.98, 0.98), 16, "discard", "benchmark_slower"),
        ((0.98, 0.98, 0.98), 16, "discard", "slower"),
        ((1.0, 1.0, 1.0), 16, "undecided", "not_proven_faster"),
        ((1.2, 1.1, 1.0), 4, "undecided", "too_few_blocks"),
        ((1.2, 1.1, 1.0), 7, "undecided", "too_few_blocks"),  # enough for one benchmark, not for three
    ],
)
def test_a_race_over_a_suite_becomes_a_decision(
    speedups: tuple[float, ...], blocks: int, decision: str, reason: str
) -> None:
    found = shown(runs(dict(zip(NAMES, speedups, strict=True)), blocks))
    assert (found.decision, found.reason) == (decision, reason)
    assert found.exit_status == {"keep": 0, "discard": 1, "undecided": 3}[decision]
    assert [each.name for each in found.benchmarks] == list(NAMES)
    assert [each.speedup for each in found.benchmarks] == pytest.approx(speedups, rel=0.01)
    assert found.speedup == pytest.approx((speedups[0] * speedups[1] * speedups[2]) ** (1 / 3), rel=0.01)
    assert len(found.speedups) == blocks


def test_a_change_that_fails_on_one_benchmark_is_discarded_and_the_benchmark_named() -> None:
    raced = runs(dict.fromkeys(NAMES, 1.3))
    [*_, last] = (each for each in raced["sort"].processes if each.contestant == "change")
    last.outcome, last.code = "disqualified", "E_OUTPUT"
    found = shown(raced)
    assert (found.decision, found.reason, found.code) == ("discard", "wrong_answers", "E_OUTPUT")
    assert "sort" in found.message


def test_a_base_that_lacks_one_benchmark_is_an_error() -> None:
    raced = runs(dict.fromkeys(NAMES, 1.3))
    for each in raced["join"].processes:
        each.outcome = "failed" if each.contestant == "base" else each.outcome
    with pytest.raises(NoBaseline, match="join"):
        shown(raced)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    steps = dict.fromkeys(NAMES, 10)
    folders_of_callables(tmp_path, steps, {**steps, "parse": 11})
    (tmp_path / "suite.toml").write_text(suite_of_calls(NAMES, "threads = 1\n"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def speedups(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Replace the race by one with these speedups."""
    given = dict(zip(NAMES, (1.2, 1.1, 1.0), strict=True))

    def race(suite: PlannedSuite, question: Question, budget_s: float | None, notify: Any) -> Judgement:
        assert set(suite.plans) == set(NAMES)
        return shown(runs(given, 24), question)

    monkeypatch.setattr(race_of_suite, "raced_suite", race)
    return given


def test_the_ledger_decides_again_by_every_benchmark_and_notices_what_was_edited(
    folder: Path, speedups: dict[str, float]
) -> None:
    ledger = folder / "tries.json"
    assert fairlap.judge("base", "change", suite="suite.toml", ledger=ledger).decision == "keep"
    speedups["join"] = 0.7
    found = fairlap.judge("base", "change", suite="suite.toml", ledger=ledger)
    assert (found.decision, found.reason, found.try_number) == ("discard", "benchmark_slower", 2)
    tries = read_ledger(ledger).tries
    assert [each.outcome for each in tries] == ["keep", "discard"]
    assert tries[0].suite
    assert [each.name for each in tries[0].suite.benchmarks] == list(NAMES)
    written = msgspec.json.decode(ledger.read_bytes())
    written["tries"][1]["suite"]["benchmarks"][2]["speedups"][0] = 1.0
    ledger.write_bytes(msgspec.json.encode(written))
    with pytest.raises(FairlapError) as refused:
        read_ledger(ledger)
    assert refused.value.code == "E_LEDGER"


@pytest.mark.slow
def test_to_confirm_races_the_same_suite_and_no_other(folder: Path, speedups: dict[str, float]) -> None:
    fairlap.judge("base", "change", suite="suite.toml", ledger="tries.json")
    assert fairlap.judge(ledger="tries.json", confirm=True).decision == "keep"
    (folder / "suite.toml").write_text(suite_of_calls(NAMES[:1], "threads = 1\n"))
    assert refusal("judge", "--ledger", "tries.json", "--confirm").code == "E_LEDGER_CHAIN"


def test_a_try_without_a_suite_is_written_as_before_so_that_its_hash_stays() -> None:
    tried = Try(
        number=1, began_at="", base=Side("a", "a"), change=Side("b", "b"), benchmark=Benchmark(call="a:b"), gain=0.0,
        share=1, level=level_of_share(1),
    )  # fmt: skip
    assert "suite" not in msgspec.json.decode(msgspec.json.encode(tried))


def test_a_benchmark_beside_a_suite_is_refused_and_so_is_one_that_races_twice(folder: Path) -> None:
    sides = ("judge", "--base", "base", "--change", "change", "--suite", "suite.toml")
    for options in (("--call", "pk.hot:parse"), ("--inputs", "m:draw"), ("--same-output",)):
        assert refusal(*sides, *options).code == "E_JUDGE"
    (folder / "suite.toml").write_text(suite_of_calls(NAMES, "threads = [1, 2]\n"))
    assert refusal(*sides).code in ("E_JUDGE", "E_REQUEST")


def test_the_command_prints_every_benchmark(folder: Path, speedups: dict[str, float]) -> None:
    done = invoke("judge", "--base", "base", "--change", "change", "--suite", "suite.toml", "-q")
    assert done.exit_code == 0
    assert all(f"  {name}: " in done.stdout for name in NAMES)


@pytest.fixture
def existing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a suite of asv, and two versions of its project."""
    project(tmp_path / "base", steps=1)
    project(tmp_path / "change", steps=1)
    (asv_folder(tmp_path) / "lost.py").write_text("import no_such_module\n")
    monkeypatch.chdir(tmp_path)

    def race(suite: PlannedSuite, question: Question, budget_s: float | None, notify: Any) -> Judgement:
        found = shown(runs(dict.fromkeys(suite.plans, 1.2), 24), question)
        return msgspec.structs.replace(found, left_out=suite.left_out)

    monkeypatch.setattr(race_of_suite, "raced_suite", race)
    return tmp_path


RACED = ["suite.Cached.track_iterations", "suite.time_function"]


def judged_existing(**options: Any) -> Judgement:
    return fairlap.judge("base", "change", suite="benchmarks", threads=1, **options)


def test_existing_benchmarks_decide_and_those_that_the_base_does_not_run_are_named(existing: Path) -> None:
    found = judged_existing(only=["time_function", "track_", "Refuses.*None", "Broken", "lost"])
    assert found.decision == "keep"
    assert [each.name for each in found.benchmarks] == RACED
    left_out = {each.name: each.why for each in found.left_out}
    assert "no text" in left_out["suite.Refuses.time_pair(param1=1, param2=None)"]
    assert "AttributeError" in left_out["suite.Broken.time_broken"]
    assert "no_such_module" in left_out["lost"]
    assert "--only" in left_out["suite.time_elsewhere"]


@pytest.mark.slow
def test_a_search_over_existing_benchmarks_confirms_by_the_same_ones(existing: Path) -> None:
    names = "|".join(RACED)
    judged_existing(only=names, ledger="tries.json")
    found = fairlap.judge(ledger="tries.json", confirm=True)
    assert [each.name for each in found.benchmarks] == RACED
    (existing / "benchmarks" / "suite.py").write_text("import hot\ndef time_function():\n    pass\n")
    assert refusal("judge", "--ledger", "tries.json", "--confirm").code == "E_LEDGER_CHAIN"


def test_a_suite_of_which_nothing_runs_and_a_choice_without_one_are_refused(existing: Path) -> None:
    sides = ("judge", "--base", "base", "--change", "change")
    assert refusal(*sides, "--suite", "benchmarks", "--only", "Broken").code == "E_BASELINE"
    assert refusal(*sides, "--suite", "benchmarks", "--only", "no_such").code == "E_SUITE"
    assert refusal(*sides, "--call", "hot:solve", "--only", "time").code == "E_JUDGE"


@pytest.mark.slow
def test_blocks_of_all_benchmarks_are_raced_in_turn_until_the_given_number(folder: Path) -> None:
    options = ("--blocks", 2, "--seconds", "10ms", "--threads", 1, "-q", "--json")
    done = invoke("judge", "--base", "base", "--change", "change", "--suite", "suite.toml", *options)
    found = msgspec.json.decode(done.stdout, type=Judgement)
    assert (done.exit_code, found.decision) == (3, "undecided")
    if found.reason != "busy_machine":
        assert (found.reason, found.blocks, len(found.benchmarks)) == ("too_few_blocks", 2, 3)
