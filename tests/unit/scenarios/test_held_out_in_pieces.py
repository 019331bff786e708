"""Held-out items are answered some at a time, each once and in order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.models.training.reference import WEIGHT
from fairlap.scenarios.learning.race import held_out_answers as answering


@pytest.mark.parametrize(("most_bytes", "asked"), [(0, [4, 4, 2]), (192, [8, 2]), (2**26, [10])])
def test_the_process_of_an_own_model_is_asked_whole_batches_at_a_time(
    monkeypatch: pytest.MonkeyPatch, most_bytes: int, asked: list[int]
) -> None:
    monkeypatch.setattr(answering, "_ASKED_BYTES", most_bytes)
    rng, counts = np.random.default_rng(0), []
    x, w = rng.standard_normal((10, 3), np.float32), rng.standard_normal((3, 2), np.float32)

    def outputs(weights: Any, inputs: Any, batch: int) -> Any:
        assert batch == 4
        counts.append(len(inputs["x"]))
        return {"y": inputs["x"] @ weights["w"]}

    materials: Any = SimpleNamespace(
        own_slopes=SimpleNamespace(outputs=outputs),
        work=SimpleNamespace(batch=4),
        spec=SimpleNamespace(weights=[SimpleNamespace(name="w")]),
    )
    found: Any = SimpleNamespace(held_inputs={"x": x}, held_labels=np.zeros(10))
    got = answering.held_out_answers(materials, found, {WEIGHT + "w": w}, 1)
    np.testing.assert_allclose(got["y"], x.astype(np.float64) @ w.astype(np.float64), rtol=1e-14)
    assert counts == asked
