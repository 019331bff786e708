"""The axes of charts over batches: no label between two sizes that follow each other, and round ones of memory."""

from __future__ import annotations

import re

import pytest
from fairlap.meters.memory import Memory
from fairlap.render.charts.parts.chart import by_batch
from fairlap.render.charts.parts.libraries import altair, svg_of
from fairlap.render.charts.parts.static import main_chart
from fairlap.results.results import results_of
from runs_to_show import run_of


@pytest.mark.parametrize("batches", [(4, 5), (1, 3), (1, 4096)])
def test_every_label_is_a_whole_number(batches: tuple[int, int]) -> None:
    alt = altair()
    chart = alt.Chart(alt.Data(values=[{"batch": each} for each in batches])).mark_point().encode(x=by_batch())
    labels = re.findall(r">([\d.,k]+)</text>", svg_of(chart.to_dict()))
    assert {f"{each:,}" for each in batches} <= set(labels)
    assert all(re.fullmatch(r"[\d,]+", label) for label in labels)


@pytest.mark.slow_but("900000.0")
@pytest.mark.parametrize(
    ("most_bytes", "ticks"),
    [
        (71e6, ["16 MiB", "32 MiB", "48 MiB", "64 MiB"]),
        (3.7e9, ["1 GiB", "2 GiB", "3 GiB"]),
        (900e3, ["256 KiB", "512 KiB", "768 KiB"]),
    ],
)
def test_ticks_of_memory_are_round_in_the_unit_that_is_shown(most_bytes: float, ticks: list[str]) -> None:
    run = run_of(("torch", "jax"), batches=(1, 4, 16))
    for process in run.processes:
        batch = run.plan.work_with(process.work_id).batch
        process.memory = Memory({"peak": int(most_bytes * batch / 16)})
    drawn = main_chart(results_of(run, "r"), png=False).decode()
    assert re.findall(r">([\d.,]+ [KMG]iB)</text>", drawn) == ticks
