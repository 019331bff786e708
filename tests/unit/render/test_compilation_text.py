"""What compiling did is shown under the ranking, and in a section of the report."""

from __future__ import annotations

from fairlap.race.around_blocks.compilation_result import AtBatch
from fairlap.render.files.markdown_file import encode
from fairlap.render.report.page import page_of
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.sizes.other_inputs import OtherInputs
from fairlap.results.results import results_of
from fairlap.scenarios.untimed.compilation_messages import Resized
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


REFUSED = AtBatch(4, Resized(why="it refused float64 inputs"), inputs=OtherInputs("float64"))
OF_ANOTHER_SIZE = AtBatch(4, Resized(1.25, 0.25, None, 1), 0.5, inputs=OtherInputs(size="image", to=32))


def test_other_types_and_sizes_are_in_the_terminal_the_report_and_markdown() -> None:
    results = results_of(with_compilations(run_of(PLAIN, batches=(4,)), others=(REFUSED, OF_ANOTHER_SIZE)), "r")
    text = text_of(results)
    assert "float64: it refused float64 inputs" in text
    assert "image=32: compiled again (1 graph), stalled 1.000 s, then 250.0 ms a call (500.0 ms if" in text
    page = page_of(results)
    for cell in ("batch 7", "float64", "image=32", "it refused float64 inputs"):
        assert cell in page.partition(">Compilation</h2>")[2]
    markdown = encode(results.rows).decode()
    assert "batch 7 500.0 ms; image=32 1.000 s; batch 8: `it failed at batch 8`; float64: `it refused" in markdown


def test_a_race_that_was_not_asked_shows_nothing_of_it() -> None:
    shown = results_of(run_of(PLAIN), "r")
    assert "compiling" not in text_of(shown)
    assert "other inputs" not in encode(shown.rows).decode()
    assert 'id="compilation"' not in page_of(shown)


def test_the_report_has_a_section_with_a_row_for_each_batch_and_reasons_cannot_break_out() -> None:
    page = page_of(results_of(with_compilations(run_of(HOSTILE, batches=(4,)), reason=SCRIPT), "r"))
    section = page.partition('id="compilation"')[0].rpartition("<section")[2] + page.partition('id="compilation"')[2]
    assert ">Compilation</h2>" in page
    assert section.partition("</section>")[0].count("<tr") == 1 + 3 + 1
    assert SCRIPT not in page
