"""A race of load on the terminal, the page and charts, in Markdown and as a command."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fairlap.engine.measurement import Notice
from fairlap.render.charts.charts_of_run import charts_of, main_chart_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.libraries import vega_lite_version, vl_convert
from fairlap.render.charts.parts.look import LIGHT
from fairlap.render.charts.parts.static import static_spec
from fairlap.render.files.markdown_file import encode
from fairlap.render.plan_command import command_of
from fairlap.render.report.page import page_of
from fairlap.render.report.ranked_table import ranked_table
from fairlap.render.text.decision import mean_text
from fairlap.render.text.terminal import text_of
from fairlap.results.decision.question import decide, question_of
from fairlap.results.results import results_of
from load_results import MS, NOTHING, generated, raced, two


@pytest.mark.parametrize(("baseline", "whose"), [("", "the first"), ("torch", "torch")])
def test_the_ratio_of_the_table_is_headed_as_one_of_rates(baseline: str, whose: str) -> None:
    shown = replace(raced(two), baseline=baseline)
    table = str(ranked_table(shown, shown.work_results[0]))
    assert f"rate of {whose} over its own" in table
    assert "time per request" not in table


def test_the_terminal_shows_rates() -> None:
    text = text_of(raced(two))
    assert "503/s [" in text
    assert "403/s [" in text
    assert "capacity 484/s" in text


def test_the_page_has_the_chart_of_latency_against_rate_and_the_command() -> None:
    shown = raced(two)
    tables = chart_tables(shown)
    assert {record["percentile"] for record in tables["load"]} == {"p50", "p90", "p99"}
    assert "load" in [chart.key for chart in charts_of(shown, tables)]
    page = page_of(shown)
    assert "fairlap load mlp" in page
    assert "largest rate" in page


def test_the_chart_has_the_first_token_and_both_bounds() -> None:
    shown = generated()
    row = shown.rows[0]
    assert row.largest_rate_limited_by == "first token"
    assert row.latency_by_rate[0].first_token_p99_ns == 3 * MS
    tables = chart_tables(shown)
    assert {record["percentile"] for record in tables["load"]} == {"p50", "p90", "p99", "first token p99"}
    bounds = {record["bound"]: record["ns"] for record in tables["load_bounds"]}
    assert bounds == {"p99 within 20 ms": 20 * MS, "first token p99 within 4 ms": pytest.approx(4 * MS)}
    assert "load" in [chart.key for chart in charts_of(shown, tables)]


def test_lines_of_the_chart_join_trials_of_one_process_and_its_key_shows_their_strokes() -> None:
    shown = raced(two)
    tables = chart_tables(shown)
    [chart] = [each for each in charts_of(shown, tables) if each.key == "load"]
    spec = static_spec(chart, shown, shown.work_results[0], tables)
    assert spec is not None
    drawn = vl_convert().vegalite_to_vega(spec, vl_version=vega_lite_version())
    [lines] = [each["from"]["facet"] for each in drawn["marks"] if "facet" in each["from"]]
    assert set(lines["groupby"]) == {"contestant", "block", "percentile"}
    assert {record["block"] for record in tables["load"]} == set(range(8))
    [key] = [each for each in drawn["legends"] if "strokeDash" in each]
    assert key["symbolStrokeColor"] == LIGHT.ink
    assert "encode" not in key  # which would make the strokes transparent


def test_a_picture_of_a_race_under_load_shows_what_contestants_are_ranked_by() -> None:
    shown = raced(two)
    assert main_chart_of(charts_of(shown, chart_tables(shown))).key == "load"
    other = raced(two, load=None)
    assert main_chart_of(charts_of(other, chart_tables(other))).key == "intervals"


def test_the_ranked_table_has_the_first_token_at_the_largest_rate() -> None:
    shown = generated()
    table = ranked_table(shown, shown.work_results[0])
    assert "first token p99" in table
    assert "3.000 ms" in table
    plain = raced(two)
    assert "first token" not in ranked_table(plain, plain.work_results[0])


def test_the_command_of_a_plan_draws_it_again() -> None:
    command = command_of(raced(two).run.plan)
    assert "--p99 0.02s" in command
    assert "--workers 2" in command
    assert "--mode" not in command


def test_a_warning_of_every_process_is_shown_once() -> None:
    shown = raced(two)
    for process in shown.run.processes:
        process.warnings = [Notice("W_LATE_REQUESTS", f"{process.block} ms late")]
    text = text_of(results_of(shown.run, "r"))
    assert text.count("W_LATE_REQUESTS") == 2  # contestants


def test_markdown_has_the_rate_and_its_latencies_before_the_time_of_a_call() -> None:
    lines = encode(raced(two).rows).decode().splitlines()
    heads = next(line for line in lines if line.startswith("| #")).strip("| ").split(" | ")
    fast = next(line for line in lines if line.startswith("| 1 |")).strip("| ").split(" | ")
    cells = dict(zip(heads, fast, strict=True))
    assert heads.index("largest rate") < heads.index("time of a call")
    assert cells["largest rate"].startswith("50")
    assert cells["p99 at this rate"].startswith("18")
    assert cells["limited by"] == "bound"
    assert any("`p99 within 20 ms, 2 workers`" in line for line in lines if line.startswith("**"))
    assert any(line.startswith("- **slower**") and "as long per request as" in line for line in lines)


def test_markdown_of_a_race_in_which_a_contestant_found_no_rate_counts_and_explains_it() -> None:
    lines = encode(raced(lambda name, block: NOTHING if name == "torch" else two(name, block)).rows).decode()
    assert lines.startswith("### fairlap: 1 unqualified")
    assert "- **unqualified**: `torch`" in lines


def test_the_mean_over_works_says_that_it_is_of_rates() -> None:
    found = raced(two, models=("mlp", "convnet"))
    question = question_of("memory<1TB", "")
    assert question is not None
    [mean] = decide(found, question).means
    [*_, row] = found.rows
    assert (mean.baseline, mean.inverse) == (found.rows[0].contestant, "largest rate")
    assert row.ratio is not None
    assert mean.ratio == pytest.approx(row.ratio.value, rel=0.01)
    assert mean_text(mean).split(": ")[1].startswith(f"the largest rate of {mean.baseline} is")
