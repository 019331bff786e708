"""Weights that do not fit into memory are refused before a contestant starts, and large ones are not held together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.call_cost import bytes_of_weights
from fairlap.models.registry import find
from fairlap.race.equal_work import material_sources
from fairlap.race.equal_work.material_sources import require_room_for_weights
from fairlap.race.processes import turns
from fairlap.request.names import Contestants, contestant_named

GIB = 2**30


def work_of(weight_bytes: int) -> Any:
    return SimpleNamespace(weight_bytes=weight_bytes, work=SimpleNamespace(label="own"))


def test_a_contestant_holds_each_weight_in_its_precision() -> None:
    spec = find("mlp").spec
    assert bytes_of_weights(spec, "fp32") == 4 * spec.parameters
    assert bytes_of_weights(spec, "bf16") == 2 * spec.parameters
    assert bytes_of_weights(spec, "int8") == spec.parameters


def test_weights_larger_than_what_is_free_are_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material_sources, "available_memory_bytes", lambda: 3 * GIB)
    contestants = Contestants("torch,jax")
    require_room_for_weights(contestants, [work_of(3 * GIB)])
    with pytest.raises(InvalidRequest) as refused:
        require_room_for_weights(contestants, [work_of(GIB), work_of(3 * GIB + 1)])
    assert refused.value.code == "E_SOURCE_SIZE"
    assert len(str(refused.value).splitlines()) == 1
    monkeypatch.setattr(material_sources, "available_memory_bytes", lambda: None)
    require_room_for_weights(contestants, [work_of(2**60)])


def test_weights_of_a_program_that_may_be_elsewhere_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material_sources, "available_memory_bytes", lambda: GIB)
    program = SimpleNamespace(framework="", program="./worker")
    require_room_for_weights([contestant_named("torch"), program], [work_of(2 * GIB)])  # type: ignore[list-item]


def run_of(name: str, weight_bytes: int) -> Any:
    return SimpleNamespace(result=SimpleNamespace(started="together", contestant=name), weight_bytes=weight_bytes)


def test_contestants_whose_weights_do_not_fit_together_do_not_start_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "available_memory_bytes", lambda: 12 * GIB)
    runs = [run_of("torch", 4 * GIB), run_of("jax", 4 * GIB)]
    with pytest.raises(turns.NoRoom):  # 1.25 times 2 (1 + 4) GiB
        turns._start_together(runs, {})
    assert turns._expected_bytes(runs[0], {}) == 5 * GIB
    assert turns._expected_bytes(runs[0], {"torch": 123}) == 123
    assert turns._expected_bytes(runs[1], {"torch": 123}, most_of_others=6 * GIB) == 6 * GIB
