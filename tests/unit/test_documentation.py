"""The documentation is true: its examples run, its warnings are the engine's, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]


def examples(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.name)
def test_the_examples_of_a_page_run_one_after_another(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(examples(page), str(page), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out


@pytest.mark.sanitized
def test_every_warning_of_the_engine_is_explained_and_no_other() -> None:
    from fairlap.engine.cuda_notices import ENDED_BY_THE_DEVICE, INVALID_BECAUSE

    source = "".join(path.read_text() for path in (TOP / "python/fairlap/engine").glob("*.py"))
    given = {*re.findall(r'Notice\(\s*"(\w+)"', source), *INVALID_BECAUSE, *ENDED_BY_THE_DEVICE}
    explained = set(re.findall(r"^\| `(\w+)` \|", (TOP / "docs/warnings.md").read_text(), re.MULTILINE))
    assert given == explained


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), link
