"""What a race shows becomes a decision with a reason, and a loop sees it by the exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fairlap
import msgspec
import pytest
from command_line import invoke, refusal
from fairlap.cli.commands.decisions.judge import _text
from fairlap.errors import FairlapError
from fairlap.judgement import judge as judge_module
from fairlap.judgement.judge_request import Benchmark, JudgeRequest
from fairlap.judgement.judgement import Judgement, decided
from fairlap.judgement.ledger import level_of_share, read_ledger
from fairlap.judgement.race_of_sides import Question, judged, planned
from fairlap.meters.memory import Memory
from fairlap.pull_request.checkouts import NoBaseline
from fairlap.race.planning.plan import Plan
from fairlap.scenarios.process_result import Outcome
from fairlap.verdict import ONE_SIDE
from saved_runs import saved_run


def shown(
    base_ns: float, change_ns: float, *, blocks: int = 12, gain: float = 0.0, level: float = ONE_SIDE
) -> Judgement:
    run = saved_run({"base": base_ns, "change": change_ns}, blocks=blocks)
    return judged(run.plan, run.processes, Question(gain, level), ended=True, seconds=24.0)


@pytest.mark.parametrize(
    ("times", "options", "decision", "status", "reason"),
    [
        ((1.3e6, 1e6), {}, "keep", 0, "faster"),
        ((1e6, 1.3e6), {}, "discard", 1, "slower"),
        ((1e6, 1e6), {"gain": 0.05}, "discard", 1, "not_faster_by_gain"),
        ((1e6, 1e6), {}, "undecided", 3, "not_proven_faster"),
        ((1.3e6, 1e6), {"blocks": 4}, "undecided", 3, "too_few_blocks"),
        ((1.3e6, 1e6), {"level": 1e-9}, "undecided", 3, "too_few_blocks"),
        ((1.3e6, 1e6), {"blocks": 1}, "undecided", 3, "not_comparable"),
    ],
)
def test_a_race_becomes_a_decision(
    times: tuple[float, float], options: dict[str, Any], decision: str, status: int, reason: str
) -> None:
    found = shown(*times, **options)
    assert (found.decision, found.exit_status, found.reason) == (decision, status, reason)
    assert (found.next is not None) == (reason in ("not_proven_faster", "too_few_blocks"))


@pytest.mark.slow_but("benchmark2", "benchmark0")
@pytest.mark.parametrize(
    ("benchmark", "compared"),
    [
        (Benchmark(call="judged_code:run"), False),
        (Benchmark(call="judged_code:run", inputs="judged_code:draw"), True),
        (Benchmark(call="judged_code:run", inputs="judged_code:draw", reference="judged_code:exact"), True),
        (Benchmark(command="true"), False),
        (Benchmark(command="echo 3", same_output=True), True),
    ],
)
def test_a_judgement_says_whether_answers_were_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark: Benchmark, compared: bool
) -> None:
    for side in ("base", "change"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "judged_code.py").write_text(
            "def run(x=1.0): return x * 2\ndef draw(rng): return rng.standard_normal(8)\nexact = run\n"
        )
    monkeypatch.chdir(tmp_path / "base")
    base, change = tmp_path / "base", tmp_path / "change"
    request = JudgeRequest(base=base, change=change, benchmark=benchmark, blocks=2)
    plan = planned(request, base, change, lambda line: None)
    processes = saved_run({"base": 1.3e6, "change": 1e6}).processes
    found = judged(plan, processes, Question(0.0, ONE_SIDE), ended=True, seconds=1.0)
    assert found.answers_compared is compared


def test_the_command_says_that_answers_were_not_compared() -> None:
    for compared, times in ((False, 1), (True, 0), (None, 0)):
        found = decided("keep", "faster", "faster", answers_compared=compared)
        assert _text(found).count("answers not compared") == times


def test_what_a_faster_change_costs_is_one_sentence() -> None:
    run = saved_run({"base": 1e6, "change": 0.8e6}, blocks=16)
    for process in run.processes:
        process.memory = Memory({"peak": int(1e8 * (1.2 if process.contestant == "change" else 1.0))})
    found = judged(run.plan, run.processes, Question(0.0, ONE_SIDE), ended=True, seconds=1.0)
    assert found.decision == "keep"
    [trade] = found.trades
    assert trade.endswith("for 20 % more peak memory")


def test_too_few_blocks_come_with_how_many_it_takes_and_how_long() -> None:
    found = shown(1.3e6, 1e6, level=1e-6)
    assert found.next is not None
    assert found.next.blocks is not None
    assert found.next.blocks >= 21  # 2 to the power of -21 is half of the level
    assert found.next.seconds == pytest.approx(2.0 * found.next.blocks)


@pytest.mark.parametrize(
    ("outcome", "code", "reason"),
    [
        ("disqualified", "E_OUTPUT", "wrong_answers"),
        ("crash", "E_CRASH", "change_failed"),
        ("failed", "", "change_failed"),
    ],
)
def test_a_change_that_fails_in_one_process_is_discarded_however_fast(outcome: Outcome, code: str, reason: str) -> None:
    run = saved_run({"base": 1.3e6, "change": 1e6})
    [*_, last] = (each for each in run.processes if each.contestant == "change")
    last.outcome, last.code = outcome, code
    found = judged(run.plan, run.processes, Question(0.0, ONE_SIDE), ended=True, seconds=1.0)
    assert (found.decision, found.reason, found.code, found.speedup) == ("discard", reason, code, None)


def test_a_base_that_fails_is_an_error_and_no_decision() -> None:
    run = saved_run({"base": 1e6, "change": 1e6})
    for each in run.processes:
        each.outcome = "failed" if each.contestant == "base" else each.outcome
    with pytest.raises(NoBaseline):
        judged(run.plan, run.processes, Question(0.0, ONE_SIDE), ended=True, seconds=1.0)


def judge(*arguments: object) -> Any:
    return invoke("judge", "--call", "hot:fn", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--base", "one"),
        ("--base", "one", "--change", "gone"),
        ("--base", "one", "--change", "./one"),
        ("--base", "one", "--change", "two", "--command", "x"),
        ("--base", "one", "--change", "two", "--same-output"),
        ("--confirm",),
        ("--confirm", "--ledger", "tries.json"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_anything_runs(folders: Path, arguments: tuple[str, ...]) -> None:
    assert refusal("judge", "--call", "hot:fn", *arguments).code == "E_JUDGE"
    assert not (folders / "tries.json").exists()


def test_failed_tests_discard_the_change_at_once_and_spend_nothing(folders: Path) -> None:
    tests = "echo first; echo the reason >&2; exit 7"
    done = judge("--base", "one", "--change", "two", "--tests", tests, "--ledger", "tries.json", "--json", "-q")
    found = msgspec.json.decode(done.stdout, type=Judgement)
    assert (done.exit_code, found.reason, found.code) == (1, "tests_failed", "E_TESTS")
    assert found.output == "first\nthe reason"
    [tried] = read_ledger(folders / "tries.json").tries
    assert (tried.outcome, tried.share, tried.level) == ("discard", None, 0.0)


def test_a_build_runs_in_both_and_only_the_changes_failure_discards(folders: Path) -> None:
    both = ("--base", "one", "--change", "two", "-q", "--build")
    assert judge(*both, "touch built; grep one hot.py").exit_code == 1
    assert (folders / "one" / "built").exists()
    assert (folders / "two" / "built").exists()
    assert refusal("judge", "--call", "hot:fn", *both, "grep two hot.py").code == "E_BASELINE"


@pytest.fixture
def raced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, Path]]:
    """Replace the race by one in which every change is 30 % faster; returns the pairs that raced."""
    pairs: list[tuple[Path, Path]] = []

    def planned(request: Any, base: Path, change: Path, notify: Any) -> Plan:
        pairs.append((base, change))
        return saved_run({"base": 1.3e6, "change": 1e6}).plan

    def race(plan: Plan, question: Question, budget_s: float | None, progress_for: Any) -> Judgement:
        return shown(1.3e6, 1e6, blocks=24, gain=question.gain, level=question.level)

    monkeypatch.setattr(judge_module, "planned", planned)
    monkeypatch.setattr(judge_module, "raced", race)
    return pairs


def test_each_try_spends_the_next_share_and_is_written_down(folders: Path, raced: list[tuple[Path, Path]]) -> None:
    for base, change in (("one", "two"), ("two", "three")):
        found = fairlap.judge(base, change, call="hot:fn", ledger="tries.json", budget="20s")
        assert found.decision == "keep"
    tries = read_ledger(folders / "tries.json").tries
    assert [each.level for each in tries] == [level_of_share(1), level_of_share(2)]
    assert [each.outcome for each in tries] == ["keep", "keep"]
    assert tries[1].base == tries[0].change
    assert found.try_number == 2
    assert found.regret is not None
    assert found.regret.at_most == 0


def test_a_chain_of_kept_changes_is_raced_last_against_first(folders: Path, raced: list[tuple[Path, Path]]) -> None:
    for base, change in (("one", "two"), ("two", "three")):
        fairlap.judge(base, change, call="hot:fn", ledger="tries.json")
    assert invoke("judge", "--ledger", "tries.json", "--confirm", "-q").exit_code == 0
    assert raced[-1] == (folders / "one", folders / "three")
    last = read_ledger(folders / "tries.json").tries[-1]
    assert (last.confirms, last.share, last.benchmark.call) == (True, 3, "hot:fn")


def test_a_folder_that_changed_since_is_not_confirmed_but_another_with_its_code_is(
    folders: Path, raced: list[tuple[Path, Path]]
) -> None:
    fairlap.judge("one", "two", call="hot:fn", ledger="tries.json")
    (folders / "one").rename(folders / "moved")
    confirm = ("judge", "--ledger", "tries.json", "--confirm", "-q")
    assert refusal(*confirm).code == "E_LEDGER_CHAIN"
    assert invoke(*confirm, "--base", "moved").exit_code == 0
    (folders / "two" / "hot.py").write_text("edited")
    assert refusal(*confirm, "--base", "moved").code == "E_LEDGER_CHAIN"


def test_a_race_that_dies_leaves_a_try_that_has_spent_its_share(
    folders: Path, raced: list[tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any) -> Judgement:
        raise KeyboardInterrupt

    monkeypatch.setattr(judge_module, "raced", die)
    done = judge("--base", "one", "--change", "two", "--ledger", "tries.json", "-q")
    assert done.exit_code == 130
    found = read_ledger(folders / "tries.json")
    assert ([each.outcome for each in found.tries], found.next_share) == (["begun"], 2)


def test_options_of_the_function_are_checked(folders: Path) -> None:
    with pytest.raises(FairlapError) as refused:
        fairlap.judge("one", "two", call="hot:fn", budgets="20s")
    assert refused.value.code == "E_JUDGE"


def test_a_decision_has_the_status_of_the_documentation() -> None:
    statuses = {name: decided(name, "faster", "").exit_status for name in ("keep", "discard", "undecided")}
    assert statuses == {"keep": 0, "discard": 1, "undecided": 3}
