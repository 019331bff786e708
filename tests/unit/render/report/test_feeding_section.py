"""The part of a report that tells who was fed how fast."""

from __future__ import annotations

import pytest
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.static import static_spec
from fairlap.render.report.page import page_of
from fairlap.results.results import results_of
from runs_to_show import HOSTILE, PLAIN, SCRIPT, fed, run_of


@pytest.mark.slow
def test_a_report_shows_what_the_time_of_fed_calls_went_into() -> None:
    page = page_of(results_of(fed(PLAIN), "r"))
    assert ">Feeding</h2>" in page
    assert "pipeline of torch" in page
    for text in ("4,000", "20 %", "80 %", "15 %", "5 %", "not reported by this pipeline"):
        assert text in page, text
    assert ">time of a fed batch</th>" in page
    assert ">time of a call</th>" not in page
    assert ">median time of a call</th>" in page_of(results_of(run_of(), "r"))


def test_the_headline_and_the_answer_say_what_was_fed() -> None:
    page = page_of(results_of(fed(PLAIN), "r"))
    title = "mlp · infer · fp32 · batch 4 · fed synthetic"
    assert f"<h1>{title}</h1>" in page
    assert f"<title>{title} – fairlap</title>" in page
    assert f'<p class="basis">{title}, on cpu with 1 thread, controlled; ' in page
    assert "fed synthetic" not in page_of(results_of(run_of(), "r"))


def test_a_picture_of_a_fed_race_says_what_was_fed() -> None:
    shown = results_of(fed(PLAIN), "r")
    tables = chart_tables(shown)
    specs = [static_spec(chart, shown, shown.work_results[0], tables) for chart in charts_of(shown, tables)]
    subtitles = {spec["title"]["subtitle"] for spec in specs if spec is not None}
    assert subtitles == {"mlp · infer · fp32 · batch 4 · fed synthetic · controlled"}


def test_names_in_the_table_of_feeding_cannot_break_out() -> None:
    assert SCRIPT not in page_of(results_of(fed(HOSTILE), "r"))


def test_a_report_of_a_race_without_data_has_no_such_part() -> None:
    assert ">Feeding</h2>" not in page_of(results_of(run_of(), "r"))
