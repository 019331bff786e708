"""Timed epochs begin warm, with the state that the training had; held-out items are answered once and in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fairlap.engine
import numpy as np
import pytest
from fairlap.frameworks.contract import Contestant, TrainingState
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import filled_batches, joined_items
from fairlap.scenarios.learning import training
from fairlap.scenarios.learning.training import Epochs
from fairlap.scenarios.learning.training_messages import Epoch

BATCH = 2
PARTS = ((0, 0), (0, 1), (1, 0))


class Adding:
    """It learns the sum of all items, and half of it is forgotten in each step."""

    def __init__(self) -> None:
        self.sum, self.steps, self.timed = np.zeros(1, np.float32), 0, 0
        self.done: list[str] = []

    def step(self, items: np.ndarray) -> None:
        self.sum = self.sum / 2 + items.sum()
        self.steps += 1
        self.done.append("step")

    def restore(self, state: Any) -> None:
        self.done.append("restore")
        self.sum = state["weight/sum"].copy()

    def reset(self) -> None:
        self.sum = np.zeros(1, np.float32)

    def hold(self) -> Callable[[], None]:
        held = self.sum.copy()

        def put_back() -> None:
            self.done.append("put back")
            self.sum = held.copy()

        return put_back

    def contestant(self, *, holds: bool = False) -> Contestant:
        state = TrainingState(lambda: {"weight/sum": self.sum.copy()}, self.reset, self.restore)
        return Contestant(
            bind=lambda arrays: lambda: self.step(arrays["item"]),
            done=None,
            outputs=lambda _: {},
            weights=dict,
            in_force={},
            training=replace(state, hold=self.hold) if holds else state,
        )


@pytest.fixture
def adding(monkeypatch: pytest.MonkeyPatch) -> Adding:
    found, time_calls = Adding(), fairlap.engine.time_calls

    def timed(*calls: Any, **options: Any) -> Any:
        found.timed = found.steps
        found.done.append("timed")
        return time_calls(*calls, **options)

    monkeypatch.setattr(fairlap.engine, "time_calls", timed)
    return found


def trained(epochs: Epochs, adding: Adding, number: int, part: int, folder: Path, steps: int) -> tuple[int, np.ndarray]:
    """How many steps of this part were taken before its time began, and the state after it."""
    items = np.arange(100, dtype=np.float32) ** 2
    safetensors.write(folder / "items", {"item": items})
    order = np.random.default_rng([number, part]).permutation(100)[: BATCH * steps]
    safetensors.write(folder / "order", {"order": order})
    before = adding.steps
    answer = epochs.train(Epoch(number, str(folder / "items"), str(folder / "order"), str(folder / "state"), part))
    assert answer.steps == steps
    assert adding.steps - adding.timed == steps
    return adding.timed - before, safetensors.read(folder / "state")["weight/sum"]


def test_steps_that_do_not_count_come_before_those_of_every_part_of_an_epoch(adding: Adding, tmp_path: Path) -> None:
    epochs = Epochs(adding.contestant(), BATCH, "cpu")
    for number, part in PARTS:
        unused, _ = trained(epochs, adding, number, part, tmp_path, steps=40)
        assert unused >= 1


def test_steps_that_do_not_count_go_on_where_an_epoch_has_few(
    adding: Adding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_WARM_UP_S", 0.02)
    began_s = time.perf_counter()
    unused, _ = trained(Epochs(adding.contestant(), BATCH, "cpu"), adding, 0, 0, tmp_path, steps=1)
    assert time.perf_counter() - began_s >= 0.02
    assert unused > 1


def test_what_undoes_these_steps_has_been_done_before_them(adding: Adding, tmp_path: Path) -> None:
    """The first time it compiles, and meanwhile threads fall asleep."""
    trained(Epochs(adding.contestant(), BATCH, "cpu"), adding, 1, 0, tmp_path, steps=10)
    before = adding.done[: adding.done.index("timed")]
    assert (before[0], before[1], before[-2], before[-1]) == ("restore", "step", "step", "restore")


def test_a_contestant_that_holds_its_state_puts_it_back_itself(adding: Adding, tmp_path: Path) -> None:
    epochs = Epochs(adding.contestant(holds=True), BATCH, "cpu")
    for number in (0, 1):
        adding.done.clear()
        trained(epochs, adding, number, 0, tmp_path, steps=10)
        before = adding.done[: adding.done.index("timed")]
        assert (before[0], before[1], before[-2], before[-1]) == ("put back", "step", "step", "put back")
        assert "restore" not in before


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("given_back_from_bytes", [-1, 2**27])  # what was read of the file of items
def test_steps_that_do_not_count_leave_nothing_in_the_state(
    adding: Adding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: bool, given_back_from_bytes: int
) -> None:
    monkeypatch.setattr(training, "_MOST_MAPPED_BYTES", given_back_from_bytes)
    epochs, expected = Epochs(adding.contestant(holds=holds), BATCH, "cpu"), np.zeros(1, np.float32)
    for number, part in PARTS:
        _, state = trained(epochs, adding, number, part, tmp_path, steps=10)
        order = np.random.default_rng([number, part]).permutation(100)[: BATCH * 10].reshape(-1, BATCH)
        for items in order:
            expected = expected / 2 + (items.astype(np.float32) ** 2).sum()
        np.testing.assert_array_equal(state, expected)


def test_a_state_that_is_large_is_not_held_twice(
    adding: Adding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_MOST_HELD_TWICE_BYTES", 3)
    epochs = Epochs(adding.contestant(), BATCH, "cpu")
    unused, _ = trained(epochs, adding, 1, 0, tmp_path, steps=10)
    assert unused == 0


@pytest.mark.parametrize(("items", "batch"), [(1, 1), (7, 3), (6, 3), (2, 5), (359, 32)])
def test_every_item_is_answered_once_and_in_order_whatever_the_batch(items: int, batch: int) -> None:
    inputs = {"image": np.arange(2.0 * items).reshape(items, 2)}
    batches = filled_batches(inputs, batch)
    assert {len(each["image"]) for each in batches} == {batch}
    assert len(batches) == -(-items // batch)
    answers = [{"logits": 10 * each["image"]} for each in batches]
    np.testing.assert_array_equal(joined_items(answers, items)["logits"], 10 * inputs["image"])
