"""The pipeline that a contestant's options choose."""

from __future__ import annotations

import pytest
from fairlap.data.pipeline_choice import Choice, choice_in, without_choice
from fairlap.errors import InvalidRequest


@pytest.mark.parametrize(
    ("options", "framework", "chosen"),
    [
        ({}, "jax", Choice("fairlap")),
        ({"feed": "fairlap"}, "torch", Choice("fairlap")),
        ({"feed": "dataloader"}, "torch", Choice("dataloader", 0)),
        ({"feed": "dataloader", "workers": "2"}, "torch", Choice("dataloader", 2)),
        ({"feed": "tfdata"}, "tensorflow", Choice("tfdata")),
        ({"workers": "9"}, "executorch", Choice("fairlap")),
    ],
)
def test_a_pipeline_is_chosen_by_option(options: dict[str, str], framework: str, chosen: Choice) -> None:
    assert choice_in(options, framework) == chosen


@pytest.mark.parametrize(
    ("options", "framework", "values"),
    [
        ({"feed": "dali"}, "torch", "fairlap, dataloader, tfdata .*dali"),
        ({"feed": "dataloader"}, "jax", "feeds torch, not jax"),
        ({"feed": "tfdata"}, "torch", "feeds tensorflow, not torch"),
        ({"feed": "dataloader", "workers": "-1"}, "torch", "0 to 64"),
        ({"feed": "dataloader", "workers": "65"}, "torch", "0 to 64"),
        ({"feed": "dataloader", "workers": "many"}, "torch", "many"),
        ({"feed": "tfdata", "workers": "2"}, "tensorflow", "feed=dataloader"),
        ({"feed": "fairlap", "workers": "2"}, "torch", "feed=dataloader"),
    ],
)
def test_what_cannot_feed_is_refused(options: dict[str, str], framework: str, values: str) -> None:
    with pytest.raises(InvalidRequest, match=values):
        choice_in(options, framework)


def test_a_framework_gets_its_own_options_only() -> None:
    assert without_choice({"feed": "dataloader", "workers": "2", "mode": "fast"}) == {"mode": "fast"}
    assert without_choice({"workers": "2"}) == {"workers": "2"}
