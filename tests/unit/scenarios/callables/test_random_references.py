"""A reference that draws numbers is refused, also where two that it drew are near each other."""

from __future__ import annotations

from typing import Any

import fairlap
import numpy as np
import pytest
from fairlap.engine.calls_in_turns import Arguments
from fairlap.errors import InvalidRequest
from fairlap.scenarios.callables.answers.right_answers.truth import DrawsNumbers, require_no_drawing, truth_of
from trust.callable_answers.wrong import add, draw

QUICK: dict[str, Any] = {"blocks": 6, "seconds": 0.002, "seed": 5}


def test_a_random_reference_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        fairlap.compare(
            {"a": add, "b": add}, reference=lambda a, b: a + np.random.default_rng().random(), inputs=draw, **QUICK
        )
    assert refused.value.code == "E_SOURCE_RANDOM"


def test_drawn_numbers_that_are_near_by_chance_are_noticed_all_the_same() -> None:
    offset = 0.5

    def reference(given: Arguments) -> Any:
        return given.args[0] + given.args[1] + np.float32(offset)

    arguments = Arguments(draw(np.random.default_rng(1)))
    truth = truth_of(reference, "reference", arguments)
    drawn = iter([0.5 + 1e-5, 0.5 - 1e-5, 0.25])  # the first two look like sums in another order

    def drawing(given: Arguments) -> Any:
        nonlocal offset
        offset = next(drawn)
        return reference(given)

    with pytest.raises(DrawsNumbers):
        require_no_drawing(drawing, "reference", arguments, truth)
    offset = 0.5
    require_no_drawing(reference, "reference", arguments, truth)
