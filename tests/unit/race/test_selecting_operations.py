"""Patterns become works, without the operations that are too large for the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairlap.errors import InvalidRequest
from fairlap.machine.files.user_folders import work_cache
from fairlap.models.operations.kinds import Gru, operation_named
from fairlap.race import operations
from fairlap.race.operations import LONGEST_REFERENCE_S, reference_s, selected_models
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest

GEMM = "gemm-m64-n1-k1216"


@pytest.fixture(autouse=True)
def one_core_and_eight_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "available_memory_bytes", lambda: 8 << 30)
    monkeypatch.setattr(operations, "_free_bytes", lambda: 1 << 40)


def planned(*models: str, **more: Any) -> Plan:
    return plan_of(RaceRequest(models=models, contestants=Contestants("torch,jax"), blocks=1, **more))


def refusal(*models: str, **more: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        planned(*models, **more)
    return raised.value


def test_every_operation_of_a_pattern_is_a_work_of_one_plan() -> None:
    plan = planned("deepbench-device/rnn*", "mlp", "deepbench-device/lstm*")
    assert [work.model for work in plan.works] == ["rnn-h32-b1-t672", "rnn-h64-b1-t96", "mlp", "lstm-h256-b1-t150"]
    assert {work.batch for work in plan.works if work.model != "mlp"} == {1}
    assert plan.skipped == ()


def test_an_operation_of_sizes_that_no_list_has_is_a_work() -> None:
    assert [work.model for work in planned("gemm-m3-n4-k5-at").works] == ["gemm-m3-n4-k5-at"]


def test_operations_of_two_patterns_are_raced_once() -> None:
    names = [work.model for work in planned("deepbench-device/*", "rnn-h*-t96").works]
    assert len(names) == len(set(names)) == 31


def test_weights_of_operations_are_drawn_once() -> None:
    assert planned(GEMM).data_seeds == (0,)


def test_what_does_not_fit_is_skipped_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(operations, "available_memory_bytes", lambda: 32 << 20)
    plan = planned("deepbench-device/gemm-*")
    assert GEMM in [work.model for work in plan.works]
    assert "gemm-m5124-n700-k2048" in [each.name for each in plan.skipped]
    assert all("memory" in each.why for each in plan.skipped)
    assert len(plan.works) + len(plan.skipped) == 13
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan


def test_what_the_disk_of_the_cache_has_no_room_for_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    first, second = (operation_named(name) for name in ("rnn-h32-b1-t672", "rnn-h64-b1-t96"))
    assert first is not None
    assert second is not None
    monkeypatch.setattr(operations, "_free_bytes", lambda: first.bytes_on_disk + second.bytes_on_disk - 1)
    plan = planned("deepbench-device/rnn-*")
    assert [work.model for work in plan.works] == [first.name]
    assert [each.name for each in plan.skipped] == [second.name]
    (work_cache() / "work" / f"{first.name}-b1-0123").mkdir(parents=True)  # it was raced before
    assert planned("deepbench-device/rnn-*").skipped == ()


@pytest.mark.slow
def test_without_a_known_amount_of_memory_nothing_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "available_memory_bytes", lambda: None)
    assert planned("deepbench-device/*").skipped == ()


def test_a_reference_that_takes_long_skips_an_operation_of_a_pattern_and_not_one_named_itself() -> None:
    long = "gru-h2816-b1-t1500"
    operation = operation_named(long)
    assert operation is not None
    assert reference_s(operation, 2) > LONGEST_REFERENCE_S
    names, skipped = selected_models(["deepbench-server/gru-h2816-b1-*", "deepbench-server/gru-h512-*"], lambda _: None)
    assert long not in names
    assert long in [each.name for each in skipped]
    assert "gru-h512-b1-t1" in names
    assert selected_models([long], lambda _: None) == ((long,), ())


def test_more_sequences_at_once_cost_a_reference_less_than_their_number() -> None:
    assert reference_s(Gru(2048, 4, 100), 2) < 2 * reference_s(Gru(2048, 1, 100), 2)


def test_an_operation_that_cannot_fit_is_refused() -> None:
    assert refusal("gemm-m100000-n100000-k100000").code == "E_OPERATION"
    assert refusal("gemm-m8448-n48000-k2816*").code == "E_OPERATION"


@pytest.mark.parametrize(
    "more",
    [
        {"batch": 2},
        {"batch": (1, 2)},
        {"data": "synthetic"},
        {"max_batch": 64},
        {"recompile": 7},
        {"recompile": ("float64",)},
    ],
)
def test_options_that_change_sizes_are_refused(more: dict[str, Any]) -> None:
    assert refusal(GEMM, **more).code == "E_OPERATION"


def test_modes_that_an_operation_lacks_are_refused() -> None:
    assert "infer" in str(refusal(GEMM, mode="grad"))
