"""A run has the roofs of what it ran on."""

from __future__ import annotations

import msgspec
import pytest
from fairlap.errors import NotAvailable
from fairlap.machine.hardware.roofs import Roofs
from fairlap.race import run
from fairlap.race.run import roofs_for
from runs_at_scales import a_plan, threads
from runs_for_rows import a_run
from runs_under_roofs import some_roofs


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """For the roofs of which number of threads, or of which device."""
    made: list[object] = []

    def measured(whose: object) -> Roofs:
        made.append(whose)
        return some_roofs()

    for name in ("roofs_of", "roofs_of_device"):
        monkeypatch.setattr(run, name, measured)
    for name in ("kept_roofs", "kept_roofs_of_device"):
        monkeypatch.setattr(run, name, lambda _: None)
    return made


def test_a_race_on_the_cpu_has_the_roofs_of_its_threads_and_one_on_a_gpu_those_of_the_gpu(asked: list[object]) -> None:
    plan = a_run().plan
    notes: list[str] = []
    assert roofs_for(plan, notes.append) == some_roofs()
    assert roofs_for(msgspec.structs.replace(plan, device="cuda:1"), notes.append) == some_roofs()
    assert asked == [plan.threads, "cuda:1"]
    assert len(notes) == 2
    assert "cuda:1" in notes[1]


def test_roofs_that_cannot_be_measured_cost_the_race_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_device: str) -> Roofs:
        raise NotAvailable("the device is busy")

    monkeypatch.setattr(run, "kept_roofs_of_device", refuse)
    notes: list[str] = []
    assert roofs_for(msgspec.structs.replace(a_run().plan, device="cuda"), report=notes.append) is None
    assert "busy" in notes[0]


def test_works_of_several_threads_have_the_roofs_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "kept_roofs", lambda _: None)
    monkeypatch.setattr(run, "usable_cores", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(run, "roofs_of", lambda count: msgspec.structs.replace(some_roofs(), threads=count))
    found = roofs_for(a_plan(threads(1, 2, 4)))
    assert found is not None
    for count in (1, 2, 4):
        own = found.of_threads(count)
        assert own is not None
        assert own.threads == count
    assert found.of_threads(3) is None
