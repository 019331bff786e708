"""Several scales on the terminal, in Markdown and on the page: tables, charts with the linear line, projections."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables, group_of
from fairlap.render.charts.scaling import LINEAR, MEASURED, PROJECTED
from fairlap.render.files.markdown_file import encode
from fairlap.render.report.page import page_of
from fairlap.render.text.terminal import text_of
from fairlap.results.results import Results, results_of
from runs_at_scales import a_run, ranks, threads
from runs_for_rows import a_run as run_at_one_scale

FOUR = threads(1, 2, 4, 8)


def results() -> Results:
    law = {scale: scale.threads / (1 + 0.1 * (scale.threads - 1)) for scale in FOUR}
    return results_of(a_run(FOUR, law), "r")


def with_ranks() -> Results:
    scales = ranks(1, 2, 4)
    run = a_run(scales, dict.fromkeys(scales, 1.0), exchange_ns=20e6, slow_rank=1, slow_by=0.3)
    return results_of(run, "r")


def charts(shown: Results) -> dict[str, Any]:
    return {chart.key: chart for chart in charts_of(shown, chart_tables(shown))}


def test_the_terminal_has_a_line_for_each_contestant_and_scale() -> None:
    text = text_of(results())
    [table] = [part for part in text.split("\n\n") if part.startswith("Scaling:")]
    lines = [line for line in table.splitlines() if line.strip().startswith(("torch", "jax"))]
    assert len(lines) == 2 * len(FOUR)
    assert "1.00×" in lines[0]
    assert "Projected, not measured" in table
    assert "sigma" in table


def test_the_exchange_and_a_straggler_have_columns_where_there_are_ranks() -> None:
    [table] = [part for part in text_of(with_ranks()).split("\n\n") if part.startswith("Scaling:")]
    assert "exchange" in table
    assert "rank 1" in table
    assert "exchange" not in text_of(results())


def test_an_exchange_without_latency_is_not_a_duration_of_zero() -> None:
    assert "ring" in text_of(with_ranks())
    assert "0.000 ns" not in text_of(with_ranks())


def test_a_race_at_one_scale_shows_nothing_of_it() -> None:
    shown = results_of(run_at_one_scale(), "r")
    assert "Scaling" not in text_of(shown)
    assert "Scaling" not in encode(shown.rows).decode()
    assert 'id="scales"' not in page_of(shown)
    assert not {"speed_up", "efficiency", "exchange_share"} & charts(shown).keys()


def without_a_scale() -> Results:
    """torch crashed on 2 ranks, and jax on 1 rank, with which its other scales are compared."""
    scales = ranks(1, 2, 4)
    run = a_run(scales, dict.fromkeys(scales, 1.0))
    for process in run.processes:
        scale = run.plan.work_with(process.work_id).scale
        if (process.contestant, scale) == ("torch", scales[1]):
            process.outcome, process.message, process.timings = "out_of_memory", LONG, {}
        if (process.contestant, scale) == ("jax", scales[0]):
            process.outcome, process.message, process.timings = "crash", "SIGSEGV", {}
    return results_of(run, "r")


LONG = f"it needed {'very ' * 30}much memory"


def test_a_scale_without_a_time_has_a_word_in_the_table_and_its_reason_once_below() -> None:
    shown = without_a_scale()
    [table] = [part for part in text_of(shown).split("\n\n") if part.startswith("Scaling:")]
    _, heads, *lines = table.splitlines()
    cells, below = lines[:6], lines[6:]
    assert re.search(r"out of memory +-( +-)*$", cells[1])
    assert cells[0].index("1.00×") == heads.index("speed-up")
    assert sum(LONG in line for line in below) == 1
    assert not any(LONG in line for line in cells)
    assert len(below) == len(set(below)) == 4  # of torch, two of jax, and of the projection of torch


@pytest.mark.slow
def test_markdown_and_the_page_have_the_reasons_below_their_tables_too() -> None:
    shown = without_a_scale()
    _, table = encode(shown.rows).decode().split("**Scaling**")
    assert "| `torch` | `2 ranks of 1 thread` | out of memory | - |" in table
    assert table.count("SIGSEGV") == 1
    page = page_of(shown)
    section = page[page.index('id="scales"') :]
    section = section[: section.index("</section>")]
    assert section.count(LONG) == section.count("SIGSEGV") == 1


def test_markdown_of_a_race_at_one_scale_has_no_table_of_scales() -> None:
    [only] = ranks(2)
    assert "**Scaling**" not in encode(results_of(a_run((only,), {only: 1.0}), "r").rows).decode()


def test_markdown_has_a_table_of_scales_below_those_of_the_works() -> None:
    text = encode(with_ranks().rows).decode()
    head, table = text.split("**Scaling**")
    assert head.count("`mlp` train") >= 3
    assert table.count("| `torch` |") == table.count("| `jax` |") == 3
    assert "`2 ranks of 1 thread`" in table


def test_works_of_different_scales_have_different_tables_in_markdown() -> None:
    text = encode(results().rows).decode()
    assert sum(line.startswith("**`mlp`") for line in text.splitlines()) == len(FOUR)


def test_the_page_has_the_tables_and_the_charts() -> None:
    page = page_of(with_ranks())
    assert 'id="scales"' in page
    assert {"speed_up", "efficiency", "exchange_share"} <= charts(with_ranks()).keys()
    assert "exchange_share" not in charts(results())


def test_every_work_shows_the_speed_ups_of_all_scales_with_the_linear_line() -> None:
    shown = results()
    tables = chart_tables(shown)
    for work in shown.works():
        own = [each for each in tables["scaling"] if each["work_id"] == work.id and each["contestant"] == "torch"]
        assert [each["cores"] for each in own] == [1, 2, 4, 8]
        assert own[1]["speed_up_low"] < own[1]["speed_up"] < own[1]["speed_up_high"]
        linear = [each for each in tables["scaling_linear"] if each["work_id"] == work.id]
        assert [(each["cores"], each["speed_up"]) for each in linear] == [(1, 1), (2, 2), (4, 4), (8, 8)]
        assert all("contestant" not in each for each in linear)


@pytest.mark.slow
def test_a_projection_is_dashed_and_goes_beyond_what_was_measured() -> None:
    shown = results()
    projected = chart_tables(shown)["scaling_projection"]
    assert max(each["cores"] for each in projected) == pytest.approx(64)
    assert all(each["low"] <= each["speed_up"] <= each["high"] for each in projected)
    spec = json.dumps(charts(shown)["speed_up"].spec)
    assert "strokeDash" in spec
    assert {row.place for row in shown.rows} <= {"1", "2", "1="}  # of two contestants at one scale


@pytest.mark.slow
def test_the_legend_has_the_ideal_line_and_a_projection_where_there_is_one() -> None:
    with_law, without = charts(results()), charts(results_of(a_run(FOUR[:2], {FOUR[0]: 1.0, FOUR[1]: 1.6}), "r"))
    assert kinds_of(with_law["speed_up"].spec) == {LINEAR, MEASURED, PROJECTED}
    for chart in (with_law["efficiency"], without["speed_up"], without["efficiency"]):
        assert kinds_of(chart.spec) == {LINEAR, MEASURED}
        assert "projection" not in chart.note


def kinds_of(spec: dict[str, Any]) -> set[str]:
    encodings = [layer["encoding"] for layer in spec["layer"]]
    found = [each["strokeDash"]["scale"]["domain"] for each in encodings if "strokeDash" in each]
    return {kind for domain in found for kind in domain}


def test_ticks_are_at_the_scales_that_were_raced_and_at_doublings_beyond_them() -> None:
    shown = charts(results())
    assert ticks_of(shown["efficiency"].spec) == [1, 2, 4, 8]
    assert ticks_of(shown["speed_up"].spec) == [1, 2, 4, 8, 16, 32, 64]


def ticks_of(spec: dict[str, Any]) -> list[float]:
    values: list[float] = spec["layer"][0]["encoding"]["x"]["axis"]["values"]
    return values


def test_a_sweep_over_batches_does_not_mix_scales() -> None:
    shown = results()
    assert len({group_of(work) for work in shown.works()}) == len(FOUR)
    assert "batch_sweep" not in charts(shown)
