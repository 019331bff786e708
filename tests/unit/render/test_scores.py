"""Metrics of a task are in every output for people and in the row, and nowhere where none were asked for."""

from __future__ import annotations

import pytest
from fairlap.models.task_metrics import Score
from fairlap.render.files import markdown_file
from fairlap.render.report.ranked_table import ranked_table
from fairlap.render.text.terminal import text_of
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results, results_of
from runs_for_rows import a_run

SCORES = {
    "top1": Score(0.7625, 0.75, 0.775, "Wilson", 4000),
    "perplexity": Score(12.5, None, None, "", 1),
}


def results(scores: dict[str, Score]) -> Results:
    run = a_run()
    for process in run.processes:
        process.scores = scores
    return results_of(run)


def texts(shown: Results) -> dict[str, str]:
    return {
        "terminal": text_of(shown),
        "markdown": markdown_file.encode(shown.rows).decode(),
        "page": str(ranked_table(shown, shown.work_results[0])),
    }


def test_a_row_has_every_metric_and_the_accuracy_with_its_interval() -> None:
    for row in results(SCORES).rows:
        assert row.scores == SCORES
        assert row.accuracy == Estimate(0.7625, 0.75, 0.775)
    for row in results({"mse": SCORES["perplexity"]}).rows:
        assert row.accuracy is None
        assert row.absent["accuracy"]


@pytest.mark.parametrize("output", ["terminal", "markdown", "page"])
def test_figures_and_their_intervals_are_shown(output: str) -> None:
    text = texts(results(SCORES))[output]
    for figure in ("0.7625", "0.75", "0.775", "12.5"):
        assert figure in text
    assert "top1" not in texts(results({}))[output]
