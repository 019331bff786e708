"""Parts of the documentation that a command writes."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def write_part(page: Path, name: str, text: str) -> None:
    """Replace what is between ``<!-- name -->`` and ``<!-- end of name -->``."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before = page.read_text(encoding="utf-8")
    if start not in before or end not in before:
        raise ValueError(f"{page} has no part named {name}")
    after = re.sub(f"{start}.*?{end}", lambda _: f"{start}\n\n{text}\n\n{end}", before, flags=re.DOTALL)
    page.write_text(after, encoding="utf-8")
