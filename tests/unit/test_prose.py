"""What people read is plain English, the README is short, and links lead to files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
README = TOP / "README.md"
PAGES = [README, TOP / "CHANGELOG.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").rglob("*.md"))]

AVOIDED = re.compile(r"\b(told|whoever|whom|anew|heat|contender)\b", re.IGNORECASE)
TEXT = {".css", ".html", ".js", ".json", ".md", ".py", ".pyi", ".toml"}
QUOTED: dict[str, set[str]] = {}  # words in quotations, by the file that holds them


def texts() -> Iterator[Path]:
    yield README
    for folder in ("python", "docs"):
        yield from (path for path in sorted((TOP / folder).rglob("*")) if path.suffix in TEXT)


def test_no_text_uses_a_word_that_is_to_be_avoided() -> None:
    found = [
        f"{path.relative_to(TOP)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if {word.lower() for word in AVOIDED.findall(line)} - QUOTED.get(str(path.relative_to(TOP)), set())
    ]
    assert not found, "\n".join(found)


def test_the_readme_has_at_most_120_lines_of_at_most_300_characters() -> None:
    lines = README.read_text().splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 300


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_relative_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def anchors(page: Path) -> set[str]:
    """Find the anchors that GitHub and the site make of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
