"""A device or a pipe in the place of a file is refused before it is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import invoke, refusal


@pytest.fixture(params=["device", "pipe"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "device":
        return Path("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("verify",), "E_BUNDLE"), (("across",), "E_RUN_FILE"), (("runs", "import"), "E_RUN_FILE")],
)
def test_commands_that_read_a_file_say_that_it_is_none(endless: Path, arguments: tuple[str, ...], code: str) -> None:
    assert refusal(*arguments, endless).code == code


def test_it_cannot_be_gated(endless: Path) -> None:
    assert invoke("gate", endless, "--baseline", "torch").exit_code == 3
