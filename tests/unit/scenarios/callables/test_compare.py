"""Callables compared in one process: orders are drawn, verdicts come from blocks, late work is seen."""

from __future__ import annotations

import ctypes
import random
import signal
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import fairlap
import pytest
from fairlap.engine.calls_in_turns import CallsInTurns, InTurn
from fairlap.scenarios.callables import idle_threads
from fairlap.scenarios.callables import result as fairlap_result
from fairlap.scenarios.callables import turns as module
from fairlap.scenarios.callables.idle_threads import cpu_of_others_s, wait_until_quiet
from fairlap.scenarios.callables.result import InProcessComparison
from fairlap.verdict import Verdict


class FakeEngine:
    """Gives each callable the medians of its own generator, and remembers who was asked when."""

    def __init__(self, medians: dict[str, Callable[[], float]], stop_after: int | None = None) -> None:
        self.medians, self.order, self.asked = medians, list[str](), list[dict[str, Any]]()
        self.stop_after = stop_after

    def __call__(self, fn: object, *, name: str, **asked: Any) -> SimpleNamespace:
        self.order.append(name)
        self.asked.append(asked)
        return SimpleNamespace(
            interrupted=len(self.order) == self.stop_after,
            calls_per_sample=7_000,
            warnings=(),
            elapsed_s=1.0,
            median_ns=self.medians[name](),
            samples=100,
            headline=SimpleNamespace(name="wall_ns", gate="", sm_mhz=None),
        )


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeEngine]:
    def install(stop_after: int | None = None, **medians: Callable[[], float]) -> FakeEngine:
        made = FakeEngine(medians, stop_after)
        monkeypatch.setattr(module, "timed", made)
        monkeypatch.setattr(module.Turns, "_in_rounds", lambda self, firsts: None)
        monkeypatch.setattr(module, "wait_until_quiet", lambda at_most_s, cpu_of_others_before_s: 0.0)
        return made

    return install


def noisy(middle: float, seed: int, spread: float = 0.01) -> Callable[[], float]:
    rng = random.Random(seed)
    return lambda: middle * rng.lognormvariate(0, spread)


def nothing() -> None:
    return None


def test_a_difference_is_found_and_labelled_as_evidence_within_one_process(engine: Callable[..., FakeEngine]) -> None:
    engine(slow=noisy(110.0, 1), fast=noisy(100.0, 2))
    found = fairlap.compare({"slow": nothing, "fast": nothing}, blocks=24, seed=3)
    assert [row.name for row in found.rows] == ["fast", "slow"]
    assert found.between("fast", "slow").verdict is Verdict.FASTER
    assert found.between("slow", "fast").verdict is Verdict.SLOWER
    assert repr(found) == str(found)
    assert found.comparisons[0].evidence == "within one process"
    assert "in this process fast is" in str(found)
    assert str(found).count("fairlap compare callable") == 1


def test_a_clear_difference_ends_after_few_blocks(engine: Callable[..., FakeEngine]) -> None:
    engine(slow=noisy(110.0, 1), fast=noisy(100.0, 2))
    found = fairlap.compare({"slow": nothing, "fast": nothing})
    decided = found.between("fast", "slow")
    assert (decided.verdict, decided.decided_after_blocks) == (Verdict.FASTER, found.blocks)
    assert 6 <= found.blocks <= 12
    assert (found.until_decided, found.interrupted) == (True, False)
    assert found.ended_early.endswith("every comparison is decided")


def test_equal_callables_end_when_they_are_shown_to_be_equivalent(engine: Callable[..., FakeEngine]) -> None:
    engine(a=noisy(100.0, 31, spread=0.001), b=noisy(100.0, 32, spread=0.001))
    found = fairlap.compare({"a": nothing, "b": nothing})
    assert found.between("a", "b").verdict is Verdict.EQUIVALENT
    assert 6 <= found.blocks < 30
    assert second_line(found).startswith("1= ")
    assert Verdict.EQUIVALENT.value in second_line(found)


def test_what_cannot_be_decided_ends_at_the_last_block_as_inconclusive(engine: Callable[..., FakeEngine]) -> None:
    engine(a=noisy(100.0, 33, spread=0.3), b=noisy(100.0, 34, spread=0.3))
    found = fairlap.compare({"a": nothing, "b": nothing}, budget=1e6)
    assert found.blocks == 300
    assert found.between("a", "b").verdict is Verdict.INCONCLUSIVE
    assert second_line(found).startswith("1= ")
    assert Verdict.INCONCLUSIVE.value in second_line(found)


def second_line(found: InProcessComparison) -> str:
    return next(line.strip() for line in str(found).splitlines() if found.rows[1].name in line.split()[:2])


def test_only_the_winner_is_compared_where_that_is_asked_for(engine: Callable[..., FakeEngine]) -> None:
    engine(a=noisy(100.0, 35), b=noisy(150.0, 36), c=noisy(150.0, 37))
    found = fairlap.compare({"a": nothing, "b": nothing, "c": nothing}, only_winner=True)
    assert [{each.a, each.b} for each in found.comparisons] == [{"a", "b"}, {"a", "c"}]
    assert found.standing is not None
    assert found.standing.winner == "a"


@pytest.mark.parametrize(
    ("options", "turn_s"),
    [
        ({"blocks": 6}, 0.05),
        ({"target": 0.5}, 0.05),
        ({"budget": 0.5}, 0.005),
        ({"budget": 60}, 0.1),
        ({"seconds": 0.01}, 0.01),
    ],
)
def test_turns_are_short_until_decided(
    engine: Callable[..., FakeEngine], options: dict[str, Any], turn_s: float
) -> None:
    made = engine(a=noisy(100.0, 38), b=noisy(150.0, 39))
    found = fairlap.compare({"a": nothing, "b": nothing}, **options)
    assert {each["seconds"] for each in made.asked[2:]} == {found.seconds}
    assert found.seconds == pytest.approx(turn_s)


def test_turns_outlast_the_threads_of_a_pool_that_spin_for_a_while(
    engine: Callable[..., FakeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(a=noisy(100.0, 40), b=noisy(150.0, 41))
    monkeypatch.setattr(module, "wait_until_quiet", lambda at_most_s, cpu_of_others_before_s: 0.001)
    found = fairlap.compare({"a": nothing, "b": nothing})
    assert found.seconds == pytest.approx(0.02)
    assert not found.excluded


def test_callables_that_all_work_late_end_soon(
    engine: Callable[..., FakeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(a=noisy(100.0, 42, spread=0.3), b=noisy(100.0, 43, spread=0.3))
    monkeypatch.setattr(module, "wait_until_quiet", lambda at_most_s, cpu_of_others_before_s: 1.0)
    found = fairlap.compare({"a": nothing, "b": nothing})
    assert (found.blocks, set(found.excluded), found.comparisons) == (6, {"a", "b"}, ())


def test_every_block_times_each_callable_once_in_an_order_from_the_seed(
    engine: Callable[..., FakeEngine],
) -> None:
    names = ["a", "b", "c"]
    first = engine(**{name: noisy(100.0, 4) for name in names})
    fairlap.compare(dict.fromkeys(names, nothing), blocks=8, seed=5)
    blocks = [first.order[start : start + 3] for start in range(3, 27, 3)]
    assert all(sorted(block) == names for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1
    again = engine(**{name: noisy(100.0, 4) for name in names})
    fairlap.compare(dict.fromkeys(names, nothing), blocks=8, seed=5)
    assert again.order == first.order


def test_all_blocks_measure_alike(engine: Callable[..., FakeEngine]) -> None:
    made = engine(a=noisy(100.0, 6), b=noisy(100.0, 7))
    fairlap.compare({"a": nothing, "b": nothing}, blocks=6, seconds=0.125, seed=8, clock="monotonic_raw")
    assert {each["calls_per_sample"] for each in made.asked[2:]} == {7_000}
    assert {each["seconds"] for each in made.asked} == {0.125}
    assert {each["clock"] for each in made.asked} == {"monotonic_raw"}


def test_five_blocks_give_figures_but_no_verdict(engine: Callable[..., FakeEngine]) -> None:
    engine(a=noisy(100.0, 9), b=noisy(200.0, 10))
    found = fairlap.compare({"a": nothing, "b": nothing}, blocks=5)
    assert found.between("a", "b").verdict is Verdict.INCONCLUSIVE
    assert [each.code for each in found.comparisons[0].warnings] == ["W_TOO_FEW_BLOCKS"]


def test_a_target_stops_when_every_interval_is_narrow_enough(engine: Callable[..., FakeEngine]) -> None:
    engine(a=noisy(100.0, 24, spread=0.001), b=noisy(110.0, 25, spread=0.001))
    narrow = fairlap.compare({"a": nothing, "b": nothing}, target=0.02)
    assert (narrow.blocks, narrow.interrupted) == (12, False)
    assert "target" in narrow.ended_early
    engine(a=noisy(100.0, 24, spread=0.5), b=noisy(110.0, 25, spread=0.5))
    assert fairlap.compare({"a": nothing, "b": nothing}, target=0.001).blocks == 60


def test_a_budget_stops_before_the_block_that_would_exceed_it(engine: Callable[..., FakeEngine]) -> None:
    engine(a=noisy(100.0, 26), b=noisy(110.0, 27))
    found = fairlap.compare({"a": nothing, "b": nothing}, budget=1e-9)
    assert found.blocks == 1
    assert "budget" in found.ended_early


def test_sentences_compare_with_the_baseline(engine: Callable[..., FakeEngine]) -> None:
    engine(a=noisy(100.0, 28), b=noisy(120.0, 29), c=noisy(150.0, 30))
    callables = {"a": nothing, "b": nothing, "c": nothing}
    lines = str(fairlap.compare(callables, baseline="c")).splitlines()
    assert [" as c [" in line for line in lines if " times as fast as " in line] == [True, True]


def test_one_block_gives_figures_and_says_why_there_is_no_verdict(engine: Callable[..., FakeEngine]) -> None:
    engine(a=noisy(100.0, 11), b=noisy(200.0, 12))
    found = fairlap.compare({"a": nothing, "b": nothing}, blocks=1)
    assert found.comparisons == ()
    assert found.why_no_verdict.startswith("1 complete block")
    assert found.no_verdict_code == "W_TOO_FEW_BLOCKS"
    assert found.why_no_verdict in str(found)
    with pytest.raises(KeyError) as none:
        found.between("a", "b")
    assert str(none.value) == found.why_no_verdict
    with pytest.raises(KeyError, match="did you mean fast") as unknown:
        fairlap_result.comparison_between((), {"fast": "", "slow": ""}, "fats", "slow", "")
    assert str(unknown.value)[0] != '"'


def test_ctrl_c_keeps_the_blocks_that_were_complete(engine: Callable[..., FakeEngine]) -> None:
    engine(stop_after=2 + 2 * 9 + 1, a=noisy(100.0, 13), b=noisy(110.0, 14))
    found = fairlap.compare({"a": nothing, "b": nothing}, blocks=20)
    assert found.interrupted
    assert found.blocks == 9
    assert "9 blocks of 20" in found.ended_early
    assert found.between("a", "b").verdict is Verdict.FASTER


def test_ctrl_c_before_the_first_block_leaves_no_rows(engine: Callable[..., FakeEngine]) -> None:
    engine(stop_after=1, a=noisy(100.0, 15), b=noisy(110.0, 16))
    found = fairlap.compare({"a": nothing, "b": nothing})
    assert (found.rows, found.comparisons, found.blocks) == ((), (), 0)
    assert found.interrupted


def test_a_callable_with_late_work_gets_no_verdict(
    engine: Callable[..., FakeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine(lazy=noisy(1.0, 17), a=noisy(100.0, 18), b=noisy(100.0, 19))
    monkeypatch.setattr(
        module, "wait_until_quiet", lambda at_most_s, cpu_of_others_before_s: 0.2 if made.order[-1] == "lazy" else 0.01
    )
    found = fairlap.compare({"lazy": nothing, "a": nothing, "b": nothing})
    assert set(found.excluded) == {"lazy"}
    assert [{each.a, each.b} for each in found.comparisons] == [{"a", "b"}]
    with pytest.raises(KeyError) as excluded:
        found.between("lazy", "a")
    assert str(excluded.value) == found.excluded["lazy"]


def test_a_callable_with_a_completion_is_judged_despite_late_work(
    engine: Callable[..., FakeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(a=noisy(100.0, 20), b=noisy(100.0, 21))
    monkeypatch.setattr(module, "wait_until_quiet", lambda at_most_s, cpu_of_others_before_s: 0.5)
    found = fairlap.compare({"a": nothing, "b": nothing}, done=lambda result: result)
    assert len(found.comparisons) == 1


@pytest.mark.parametrize(
    ("callables", "done", "message"),
    [
        ({"a": nothing}, None, "at least two callables"),
        ([nothing, nothing], None, "at least two callables"),
        ({"a": nothing, "b": nothing}, {"c": nothing}, "not among the callables: 'c'"),
        ({"a": nothing, 2: nothing}, None, "must be strings \\(got 2\\)"),
    ],
)
def test_what_cannot_be_compared_is_refused(callables: Any, done: Any, message: str) -> None:
    with pytest.raises(fairlap.InvalidRequest, match=message):
        fairlap.compare(callables, done=done)


@pytest.mark.parametrize(
    "option",
    [
        {"budget": 0},
        {"target": 2.0},
        {"baseline": "c"},
        {"blocks": 0},
        {"seconds": -1},
        {"seed": -1},
        {"alpha": 2.0},
        {"margin": -0.1},
        {"margin": -0.1, "blocks": 2},
    ],
)
def test_an_option_out_of_range_is_refused(engine: Callable[..., FakeEngine], option: dict[str, Any]) -> None:
    engine(a=noisy(100.0, 22), b=noisy(100.0, 23))
    with pytest.raises(fairlap.InvalidRequest):
        fairlap.compare({"a": nothing, "b": nothing}, **option)


def test_a_callable_that_raises_is_named() -> None:
    def broken() -> None:
        raise ValueError("no such kernel")

    with pytest.raises(fairlap.CallableRaised, match="b raised ValueError: no such kernel"):
        fairlap.compare({"a": nothing, "b": broken}, blocks=2, seconds=0.001)


def test_identical_callables_are_compared_for_real() -> None:
    found = fairlap.compare({"a": lambda: sum(range(100)), "b": lambda: sum(range(100))}, blocks=6, seconds=0.002)
    assert len(found.comparisons) == 1
    assert all(len(row.block_medians_ns) == 6 for row in found.rows)


def test_nothing_is_awaited_where_no_other_thread_has_worked() -> None:
    before_s = cpu_of_others_s()
    assert wait_until_quiet(30.0, before_s) == 0.0


def test_callables_take_turns_of_one_sample_in_an_order_and_its_reverse() -> None:
    called = list[str]()
    calls = [InTurn(lambda: called.append("a")), InTurn(lambda: called.append("b"))]
    found = CallsInTurns().rounds(calls, 3, [1, 0], [2, 1])
    assert "".join(called) == "bb" + "aaa" + "aaa" + "bb" + "bb" + "aaa"  # one more call before each sample
    assert found.wall_ns.shape == (2, 3)
    assert (found.interrupted, found.raised) == (False, None)


def test_the_samples_of_rounds_belong_to_their_callables() -> None:
    calls = [InTurn(lambda: time.sleep(0.002)), InTurn(lambda: None)]
    quick_ns, slow_ns = CallsInTurns().rounds(calls, 8, [1, 0], [1, 10]).wall_ns[::-1]
    assert slow_ns.min() >= 2e6
    assert sorted(quick_ns)[1] < 2e6  # of eight


def test_a_native_callable_takes_turns_with_its_completion() -> None:
    spin = ctypes.CDLL(None).getpid
    calls = [InTurn(spin), InTurn(lambda: 5, lambda result: time.sleep(0.001))]
    found = CallsInTurns().rounds(calls, 8, [0, 1], [100, 1])
    assert found.wall_ns[1].min() >= 1e6
    assert found.wall_ns[0].min() < 1e6


def test_what_a_callable_raises_in_its_turn_ends_the_comparison() -> None:
    left = 100_000

    def broken() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise ValueError("worn out")

    with pytest.raises(fairlap.CallableRaised, match="b raised ValueError: worn out"):
        fairlap.compare({"a": nothing, "b": broken}, blocks=1000, seconds=0.01)


def test_ctrl_c_in_a_turn_keeps_the_blocks_before() -> None:
    left = 3000

    def interrupting() -> None:
        nonlocal left
        left -= 1
        if not left:
            signal.raise_signal(signal.SIGINT)

    calls = [InTurn(nothing), InTurn(interrupting)]
    assert not CallsInTurns().rounds(calls, 100, [0, 1], [1, 1]).interrupted
    assert CallsInTurns().rounds(calls, 2000, [0, 1], [1, 1]).interrupted


@pytest.mark.sanitized
def test_waiting_ends_when_the_work_of_another_thread_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, others_want_a_core = 0, idle_threads._others_want_a_core

    def looked() -> bool:
        nonlocal looks
        looks += 1
        return others_want_a_core()

    def work() -> None:
        while looks < 10:
            sum(range(100))

    monkeypatch.setattr(idle_threads, "_others_want_a_core", looked)
    worker = threading.Thread(target=work)
    worker.start()
    went_on_s = wait_until_quiet(120.0)
    seen, looks = looks, 10
    worker.join()
    assert seen >= 10, "the other thread was still at work"
    assert went_on_s > 0.001


def test_waiting_for_a_process_that_never_rests_gives_up() -> None:
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(stop.is_set, True)])
    busy.start()
    try:
        assert wait_until_quiet(0.05) > 0.0
    finally:
        stop.set()
        busy.join()
