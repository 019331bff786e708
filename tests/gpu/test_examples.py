"""The documentation's examples that need a device run on one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "printed"), [("how-to/choose-a-method.md", "device_span"), ("how-to/feed-a-race.md", "39180.0")]
)
def test_the_cuda_examples_of_a_page_run(
    page: str, printed: str, torch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"^```python gpu\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "example"})
    assert printed in capsys.readouterr().out
