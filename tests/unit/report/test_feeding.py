"""The part of a report that tells who was fed how fast."""

from __future__ import annotations

from fairlap.report.page import html_report
from runs_to_show import HOSTILE, PLAIN, SCRIPT, fed, run_of


def test_a_report_shows_what_the_time_of_fed_calls_went_into() -> None:
    page = html_report(fed(PLAIN), "r")
    assert ">Feeding</h2>" in page
    assert "pipeline of torch" in page
    for told in ("4,000", "20.0%", "80.0%", "15.0%", "5.0%", "not told by this pipeline"):
        assert told in page, told


def test_names_in_the_table_of_feeding_cannot_break_out() -> None:
    assert SCRIPT not in html_report(fed(HOSTILE), "r")


def test_a_report_of_a_race_without_data_has_no_such_part() -> None:
    assert ">Feeding</h2>" not in html_report(run_of(), "r")
