"""What git says of a failure: its reason, not the advice after it."""

from __future__ import annotations

import pytest
from fairlap.machine.programs.git import reason_of_git


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            "Cloning into 'x'...\nfatal: '/nowhere' does not appear to be a git repository\nfatal: Could not read from "
            "remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
            "'/nowhere' does not appear to be a git repository",
        ),
        ("error: pathspec 'v9' did not match any file(s) known to git\n", "pathspec 'v9' did not match any file(s)"),
        ("something else\n\n", "something else"),
        ("", "no reason"),
    ],
)
def test_the_reason_is_found(printed: str, reason: str) -> None:
    assert reason in reason_of_git(printed)
