"""Parts that do what a test wants of them, as modules that the process of a part can import."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.proof.parts import Part

Make = Callable[[str], Part]


@pytest.fixture
def part_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a part whose ``run(record, deadline)`` has this body."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def make(body: str) -> Part:
        text = "from tests.gpu.proof.record import NotHere, Step\n\n\ndef run(record, deadline):\n"
        (tmp_path / "made_up_part.py").write_text(text + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n")
        return Part(3, "made-up", "made up", "made_up_part", 20)

    return make
