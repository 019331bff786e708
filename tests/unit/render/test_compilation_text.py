"""What compiling did is shown under the ranking, and in a section of the report."""

from __future__ import annotations

from fairlap.render.report.page import page_of
from fairlap.render.terminal import text_of
from fairlap.results.results import results_of
from runs_to_show import HOSTILE, PLAIN, SCRIPT, run_of
from runs_with_compilations import with_compilations


def test_the_terminal_shows_counts_reasons_and_a_line_for_each_batch() -> None:
    text = text_of(results_of(with_compilations(run_of(PLAIN, batches=(4,))), "r"))
    _, _, shown = text.partition("What compiling did")
    for part in (
        "2 graphs, 1 graph break",
        "6 operators became 5 kernels",
        "500.0 ms",
        "250.0 ms",
        "125.0 ms",
        "E_CRASH",
    ):
        assert part in shown, part
    assert shown.count("the batch is new") == 2
    assert "it failed at batch 8" in shown


def test_a_race_that_was_not_asked_shows_nothing_of_it() -> None:
    shown = results_of(run_of(PLAIN), "r")
    assert "compiling" not in text_of(shown)
    assert 'id="compilation"' not in page_of(shown)


def test_the_report_has_a_section_with_a_row_for_each_batch_and_reasons_cannot_break_out() -> None:
    page = page_of(results_of(with_compilations(run_of(HOSTILE, batches=(4,)), reason=SCRIPT), "r"))
    section = page.partition('id="compilation"')[0].rpartition("<section")[2] + page.partition('id="compilation"')[2]
    assert ">Compilation</h2>" in page
    assert section.partition("</section>")[0].count("<tr") == 1 + 3 + 1
    assert SCRIPT not in page
