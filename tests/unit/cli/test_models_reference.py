"""The page of models has the table that its folders make."""

from __future__ import annotations

from pathlib import Path

from fairlap.cli.models_reference import BEGIN, END, page_with_table, table
from fairlap.models.names import workload_names

PAGE = Path(__file__).parents[3] / "docs/reference/models.md"


def test_the_page_has_the_table_of_today() -> None:
    text = PAGE.read_text("utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert page_with_table(text) == text


def test_every_model_has_a_line_and_a_size_its_former_name() -> None:
    lines = table().splitlines()
    assert len(lines) == 2 + len(set(workload_names()) - {"callable"})
    assert sum(line.startswith("| `vit:tiny`, `vit_tiny` |") for line in lines) == 1
