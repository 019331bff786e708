"""Every code of an error or a warning has an explanation, and every explanation a code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import fairlap
from click.testing import CliRunner, Result
from fairlap.cli import cli
from fairlap.cli.commands.explain import explanations
from fairlap.errors import InvalidRequest

PACKAGE = Path(fairlap.__file__).parent


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *arguments])


def test_every_code_in_the_package_has_a_section_and_every_section_a_code() -> None:
    sources = [file.read_text() for file in PACKAGE.rglob("*.py")]
    used = {code for text in sources for code in re.findall(r"[\"'`]([EW]_[A-Z0-9_]+)[\"'`]", text)}
    known = explanations()
    assert used <= set(known)
    assert {code for code in set(known) - used if code.startswith("E_")} == set()
    assert list(known) == sorted(known)
    assert all(len(text) > 60 for text in known.values())


def test_a_code_is_explained_also_in_brackets_and_small_letters() -> None:
    assert explain("e_request").output == explain("[E_REQUEST]").output
    assert json.loads(explain("E_REQUEST", "--json").output)["text"] == explanations()["E_REQUEST"]


def test_without_a_code_all_are_listed() -> None:
    assert explain().output.split() == list(explanations())


def test_an_unknown_code_is_refused_with_the_nearest() -> None:
    refused = explain("E_REQEST").exception
    assert isinstance(refused, InvalidRequest)
    assert "E_REQUEST" in str(refused)
