"""The notebook of the documentation runs from its first cell to its last, and its figures are right."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fairlap.results.results import Results
from fairlap.scenarios.callables import in_process
from fairlap.scenarios.callables.result import InProcessComparison, NotCompared
from fairlap.verdict import Verdict
from html_read import ReadHtml
from notebook_shell import Shell, code_cells

NOTEBOOK = Path(__file__).parents[2] / "docs/examples/notebook.ipynb"


@pytest.mark.slow
@pytest.mark.sanitized
def test_its_cells_run_in_order_and_show_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    cells = "\0".join(code_cells(NOTEBOOK))
    for long, brief in (("budget=5", "budget=0.5"), ("blocks=6", "blocks=2")):
        assert long in cells
        cells = cells.replace(long, brief)
    for budget_s in (0.5, 4.0, 30.0):  # a busy machine may have too few blocks for a verdict in a short one
        monkeypatch.setattr(in_process, "BUDGET_S", budget_s)
        shell = Shell()
        with suppress(NotCompared):
            shown = [shell.run_cell(source) for source in cells.split("\0")]
            break
    _, line, cell, verdict, results, frame, runs = shown
    assert isinstance(line, InProcessComparison)
    assert [row.name for row in line.rows] == ["sorted(numbers)", "sorted(shuffled)"]
    assert isinstance(cell, InProcessComparison)
    assert [row.name for row in cell.rows] == ["the built-in", "a loop"]
    assert cell.answers.compared == "each other"
    assert isinstance(verdict, Verdict)
    assert isinstance(results, Results)
    times_ns = {row.contestant: row.latency_p50_ns.value for row in results.rows if row.latency_p50_ns}
    assert times_ns["short"] > 10e6  # with the start of a program
    assert times_ns["long"] > 30e6
    assert dict(zip(frame["contestant"], frame["latency_p50_ns"], strict=True)) == times_ns
    assert isinstance(runs, list)
    for each in (line, cell, results):
        assert ReadHtml(each._repr_html_()).misplaced == []


@pytest.mark.sanitized
def test_a_kernel_runs_it_and_keeps_one_line_of_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs: dict[str, list[Any]] = {cell.id: cell.outputs for cell in book.cells if cell.cell_type == "code"}
    for cell in ("race-a-line", "race-a-cell", "race-programs"):
        html = outputs[cell][-1].data["text/html"]
        assert ReadHtml(html).misplaced == []
    progress, result = outputs["race-programs"]
    assert progress.data["text/plain"].startswith("fairlap: ")
    assert result.output_type == "execute_result"
    assert [output for cell in outputs.values() for output in cell if output.output_type == "stream"] == []


def test_it_is_kept_without_what_a_run_leaves() -> None:
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert {cell["execution_count"] for cell in code} == {None}
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
