"""Every error and warning in the source keeps to the same form, and has a code that is explained."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import fairlap
import pytest
from fairlap.explanations import explanations
from messages import AVOIDED, Message, messages

PACKAGE = Path(fairlap.__file__).parent
UNSPACED = re.compile(r"\{[^{}\"\'\n]*:[^{}\n]*%\}")
LONGEST = 330  # characters of the template: about two lines of a terminal once it is filled in


@pytest.fixture(scope="module")
def every() -> list[Message]:
    """Read when a test needs them: that takes seconds, and every process of the tests imports this file."""
    return messages()


def test_the_source_is_read_whole(every: list[Message]) -> None:
    assert len(every) > 900
    assert {"E_REQUEST", "E_SOURCE", "E_STORE_FULL", "W_FEW_SAMPLES", "W_BUSY_MACHINE"} <= {x.code for x in every}


def test_every_code_is_explained(every: list[Message]) -> None:
    explained = set(explanations())
    missing = {each.code for each in every if each.code} - explained
    assert not missing


def test_a_percentage_is_printed_with_a_space_before_its_sign() -> None:
    """Python's own format of percentages has none."""
    files = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    assert len(files) > 500
    assert not {f"{path}: {found}" for path, text in files.items() for found in UNSPACED.findall(text)}


@pytest.mark.parametrize("rule", ["avoided", "long", "ends", "begins", "spaces"])
def test_every_message_keeps_to_the_form(rule: str, every: list[Message]) -> None:
    rules: dict[str, Callable[[str], object]] = {
        "avoided": lambda text: AVOIDED.search(text),
        "long": lambda text: len(text) > LONGEST or text.count("\n") > 1,
        "ends": lambda text: text[-1:] in ".!:;, \n" and not text.endswith("..."),
        "begins": lambda text: re.match(r"(Error|Warning|The|A|An|Cannot|No|It|This)\b|\s", text),
        "spaces": lambda text: "  " in text,
    }
    broken = rules[rule]
    assert [f"{each.place}: {each.text}" for each in every if each.is_whole and broken(each.text)] == []
