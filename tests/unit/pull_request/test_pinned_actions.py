"""An action of somebody else's is named by its commit: a tag can be moved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
WORKFLOWS = [TOP / "action.yml", *sorted((TOP / ".github" / "workflows").glob("*.yml"))]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_action_is_pinned_by_commit_with_its_version(file: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses: *(.*)$", file.read_text(), re.MULTILINE)
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*", each)] == []


@pytest.mark.parametrize("file", WORKFLOWS[1:], ids=lambda file: file.name)
def test_a_workflow_may_only_read_unless_a_job_asks_for_more(file: Path) -> None:
    assert "\npermissions:\n  contents: read\n" in file.read_text()
