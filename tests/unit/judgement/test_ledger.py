"""A ledger spends one error rate over all tries, belongs to one judge at a time, and is refused where it was edited."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.judgement.judge_request import Benchmark
from fairlap.judgement.ledger import (
    ERROR_RATE,
    Side,
    Try,
    held_ledger,
    kept_chain,
    level_of_share,
    read_ledger,
)
from fairlap.judgement.regret import regret

FASTER, SLOWER, EQUAL = (tuple(float(step) for step in np.full(30, each)) for each in (1.3, 0.7, 1.0))


def new(base: str, change: str, share: int | None = 1, **fields: Any) -> Try:
    level = 0.0 if share is None else level_of_share(share)
    sides = {"base": Side(f"/{base}", base), "change": Side(f"/{change}", change)}
    usual = {"number": 0, "began_at": "2026-01-01T00:00:00+00:00", "benchmark": Benchmark(call="a:b"), "gain": 0.0}
    return Try(**{**usual, **sides, "share": share, "level": level, **fields})


def ended(begun: Try, outcome: str, speedups: tuple[float, ...]) -> Try:
    reason = {"keep": "faster", "discard": "slower", "undecided": "not_proven_faster"}[outcome]
    found = {
        "outcome": outcome,
        "reason": reason,
        "speedups": speedups,
        "speedup": speedups[0],
        "ended_undecided": True,
    }
    return msgspec.structs.replace(begun, **found)


def written(path: Path, *tries: tuple[str, str, str, tuple[float, ...]]) -> None:
    with held_ledger(path) as file:
        for base, change, outcome, speedups in tries:
            file.replace(ended(file.add(new(base, change, file.ledger.next_share)), outcome, speedups))


def test_the_shares_of_any_number_of_tries_add_up_to_at_most_the_error_rate() -> None:
    counted = sum(map(level_of_share, range(1, 100_001)))
    beyond = ERROR_RATE / (2.1098 * np.log(100_001))  # the integral from there on
    assert 0.99 * ERROR_RATE < counted + beyond <= ERROR_RATE
    assert level_of_share(1) > level_of_share(2) > level_of_share(500) > 1e-6


def test_a_try_that_began_and_died_has_spent_its_share(tmp_path: Path) -> None:
    path = tmp_path / "tries.json"
    with held_ledger(path) as file:
        file.add(new("a", "b"))
    found = read_ledger(path)
    assert [each.outcome for each in found.tries] == ["begun"]
    assert found.next_share == 2


def test_a_try_that_was_not_raced_spends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tries.json"
    with held_ledger(path) as file:
        file.add(new("a", "b", share=None, outcome="discard", reason="tests_failed"))
    assert read_ledger(path).next_share == 1


def _hold(path: Path, holds: Any, ends: Any) -> None:
    with held_ledger(path):
        holds.set()
        ends.wait(20)


def test_a_second_judge_is_refused_while_the_first_one_holds_the_ledger(tmp_path: Path) -> None:
    path, context = tmp_path / "tries.json", multiprocessing.get_context("spawn")
    holds, ends = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(path, holds, ends))
    other.start()
    try:
        assert holds.wait(120)
        with pytest.raises(FairlapError) as refused, held_ledger(path):
            pass
        assert refused.value.code == "E_LEDGER_IN_USE"
    finally:
        ends.set()
        other.join(20)
    with held_ledger(path):  # free again
        pass


def _kept_anyway(tries: list[dict[str, Any]]) -> None:
    tries[0]["outcome"] = "keep"


def _removed(tries: list[dict[str, Any]]) -> None:
    del tries[0]


def _refunded(tries: list[dict[str, Any]]) -> None:
    tries[0]["share"], tries[0]["level"] = None, 0.0


def _cheaper(tries: list[dict[str, Any]]) -> None:
    tries[1]["level"] = tries[0]["level"]


def _other_figures(tries: list[dict[str, Any]]) -> None:
    tries[1]["speedups"] = list(FASTER)


def _other_code(tries: list[dict[str, Any]]) -> None:
    tries[0]["change"]["sha256"] = "c"


def _another_gain(tries: list[dict[str, Any]]) -> None:
    tries[1]["gain"] = 0.5


@pytest.mark.parametrize(
    "edit", [_kept_anyway, _removed, _refunded, _cheaper, _other_figures, _other_code, _another_gain]
)
def test_a_ledger_that_was_edited_is_refused(tmp_path: Path, edit: Callable[[list[dict[str, Any]]], None]) -> None:
    path = tmp_path / "tries.json"
    written(path, ("a", "b", "discard", SLOWER), ("a", "c", "undecided", EQUAL))
    read_ledger(path)
    document = msgspec.json.decode(path.read_bytes())
    edit(document["tries"])
    path.write_bytes(msgspec.json.encode(document))
    with pytest.raises(FairlapError) as refused:
        read_ledger(path)
    assert refused.value.code == "E_LEDGER"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema": "fairlap.ledger/2"}',
        b"{}",
        b'{"error_rate": 0.5}',
        b'{"tries": [{"number": 1}]}',
        b"\xff" * 9,
        b"[" * 9999,
    ],
)
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tries.json"
    path.write_bytes(content)
    with pytest.raises(FairlapError) as refused:
        read_ledger(path)
    assert refused.value.code == "E_LEDGER"


def test_kept_changes_are_a_chain_and_a_gap_in_it_is_refused(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.json", tmp_path / "broken.json"
    written(whole, ("a", "b", "keep", FASTER), ("b", "x", "discard", SLOWER), ("b", "c", "keep", FASTER))
    assert [each.number for each in kept_chain(read_ledger(whole))] == [1, 3]
    written(broken, ("a", "b", "keep", FASTER), ("x", "c", "keep", FASTER))
    with pytest.raises(FairlapError) as refused:
        kept_chain(read_ledger(broken))
    assert refused.value.code == "E_LEDGER_CHAIN"


def test_the_regret_is_what_an_undecided_change_may_be_faster_by_than_the_kept_code(tmp_path: Path) -> None:
    path = tmp_path / "tries.json"
    maybe = tuple(float(each) for each in np.exp(0.01 + np.random.default_rng(1).normal(0, 0.05, 30)))
    written(path, ("a", "b", "undecided", maybe))
    alone = regret(read_ledger(path))
    assert alone is not None
    assert (alone.fastest, alone.kept, alone.tried, alone.unbounded) == (1, 0, 1, 0)
    assert 0.01 < alone.at_most < 0.1
    written(path, ("a", "c", "keep", FASTER))
    kept = regret(read_ledger(path))
    assert kept is not None
    assert (kept.at_most, kept.fastest, kept.kept, kept.tried) == (0.0, None, 1, 2)


def test_a_change_that_was_discarded_after_few_blocks_is_counted_as_unbounded(tmp_path: Path) -> None:
    path = tmp_path / "tries.json"
    written(path, ("a", "b", "keep", FASTER), *([("b", "x", "discard", SLOWER[:8])] * 12))
    found = regret(read_ledger(path))
    assert found is not None
    assert (found.tried, found.unbounded) == (1, 12)


def test_without_a_comparison_there_is_no_regret(tmp_path: Path) -> None:
    assert regret(read_ledger(tmp_path / "none.json")) is None
