"""Optimizers and schedules as people write them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.training import AdamW, Schedule, Sgd, Training, optimizer_in, schedule_in
from hypothesis import given
from hypothesis import strategies as st


def test_what_is_left_out_has_its_usual_value() -> None:
    assert optimizer_in("sgd:lr=0.1,momentum=0.9") == Sgd(0.1, 0.9, 0.0)
    assert optimizer_in("adamw") == AdamW(0.001, 0.9, 0.999, 1e-8, 0.01)
    assert schedule_in("cosine:steps=100,warmup=10") == Schedule("cosine", 10, 100)
    assert schedule_in("constant:warmup=5") == Schedule("constant", 5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "adam",
        "sgd:lr",
        "sgd:lr=fast",
        "sgd:beta1=0.9",
        "sgd:lr=0",
        "sgd:momentum=1",
        "adamw:epsilon=0",
        "sgd:lr=nan",
        "sgd:lr=1e39",
        "sgd:lr=0.1,lr=0.2",
    ],
)
def test_what_is_no_optimizer_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        optimizer_in(text)


@pytest.mark.parametrize(
    "text",
    ["steps", "cosine", "cosine:steps=10,warmup=10", "linear:steps=5,floor=2", "cosine:steps=1.5", "cosine:steps=1e30"],
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        schedule_in(text)


def test_a_schedule_warms_up_and_falls_to_its_floor() -> None:
    cosine = Schedule("cosine", warmup=2, steps=6, floor=0.1)
    assert [cosine.at(step) for step in (0, 1, 2, 4, 6, 100)] == pytest.approx([0.5, 1.0, 1.0, 0.55, 0.1, 0.1])
    linear = Schedule("linear", steps=4)
    assert [linear.at(step) for step in (0, 1, 4)] == pytest.approx([1.0, 0.75, 0.0])
    assert Schedule().at(12345) == 1.0


@pytest.mark.parametrize(
    "schedule", [Schedule(), Schedule("constant", 3), Schedule("cosine", 2, 6, 0.1), Schedule("linear", 0, 4)]
)
def test_a_traced_schedule_is_the_same(schedule: Schedule) -> None:
    traced = [float(schedule.at_traced(np.float64(step), np)) for step in range(8)]
    assert traced == pytest.approx([schedule.at(step) for step in range(8)])


@given(
    st.floats(1e-6, 10), st.floats(0, 0.99), st.floats(0, 1), st.sampled_from(["constant", "cosine", "linear"]),
    st.integers(0, 50), st.integers(51, 1000),
)  # fmt: skip
def test_training_survives_json(lr: float, momentum: float, decay: float, kind: str, warmup: int, steps: int) -> None:
    schedule = Schedule(kind, warmup, 0 if kind == "constant" else steps)  # type: ignore[arg-type]
    training = Training(Sgd(lr, momentum, decay), schedule)
    assert msgspec.json.decode(msgspec.json.encode(training), type=Training) == training
    assert training.text.startswith("sgd:lr=")
