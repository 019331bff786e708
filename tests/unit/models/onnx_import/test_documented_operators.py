"""The documentation lists the operators that are claimed."""

from __future__ import annotations

import re
from pathlib import Path

from fairlap.models.onnx_import.operators.table import claimed

_PAGE = Path(__file__).parents[4] / "docs" / "reference" / "onnx-import.md"


def test_the_documentation_lists_the_operators_that_are_claimed() -> None:
    """`python tests/bench/importer_table.py` writes the list."""
    (part,) = re.findall("<!-- operators -->(.*?)<!-- end of operators -->", _PAGE.read_text(), re.DOTALL)
    assert re.findall(r"`(\w+)`", part) == claimed()
