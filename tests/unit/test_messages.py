"""Every error and warning in the source keeps to the same form, and has a code that is explained."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from fairlap.explanations import explanations
from messages import AVOIDED, messages

MESSAGES = messages()
WHOLE = [each for each in MESSAGES if each.is_whole]
LONGEST = 330  # characters of the template: about two lines of a terminal once it is filled in


def test_the_source_is_read_whole() -> None:
    assert len(MESSAGES) > 900
    assert {"E_REQUEST", "E_SOURCE", "E_STORE_FULL", "W_FEW_SAMPLES", "W_BUSY_MACHINE"} <= {x.code for x in MESSAGES}


def test_every_code_is_explained() -> None:
    explained = set(explanations())
    missing = {each.code for each in MESSAGES if each.code} - explained
    assert not missing


@pytest.mark.parametrize("rule", ["avoided", "long", "ends", "begins", "spaces"])
def test_every_message_keeps_to_the_form(rule: str) -> None:
    rules: dict[str, Callable[[str], object]] = {
        "avoided": lambda text: AVOIDED.search(text),
        "long": lambda text: len(text) > LONGEST or text.count("\n") > 1,
        "ends": lambda text: text[-1:] in ".!:;, \n" and not text.endswith("..."),
        "begins": lambda text: re.match(r"(Error|Warning|The|A|An|Cannot|No|It|This)\b|\s", text),
        "spaces": lambda text: "  " in text,
    }
    broken = rules[rule]
    assert [f"{each.place}: {each.text}" for each in WHOLE if broken(each.text)] == []
