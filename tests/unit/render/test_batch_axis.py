"""The axis of batch sizes has no label between two sizes that follow each other."""

from __future__ import annotations

import re

import pytest
from fairlap.render.charts.parts.chart import by_batch
from fairlap.render.charts.parts.libraries import altair, svg_of


@pytest.mark.parametrize("batches", [(4, 5), (1, 3), (1, 4096)])
def test_every_label_is_a_whole_number(batches: tuple[int, int]) -> None:
    alt = altair()
    chart = alt.Chart(alt.Data(values=[{"batch": each} for each in batches])).mark_point().encode(x=by_batch())
    labels = re.findall(r">([\d.,k]+)</text>", svg_of(chart.to_dict()))
    assert {f"{each:,}" for each in batches} <= set(labels)
    assert all(re.fullmatch(r"[\d,]+", label) for label in labels)
