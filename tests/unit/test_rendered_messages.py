"""Every code has a message that is really rendered, and a next step that the message or its explanation names.

A code's message comes from the test that ``rendered_by.txt`` names, or from a function of ``message_cases``: a new code
needs a line there or a function here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fairlap.explanations import explanations, next_step
from message_cases import CASES
from messages import AVOIDED
from rendered_messages import TOP, provoked, provoking_tests

ONLY_ON_HARDWARE: dict[str, str] = {}
"""Codes whose messages no test on any machine can provoke, each with the reason."""

VAGUE = re.compile(r"^(See|Look at) (the|its) (message|documentation)\.?$")
LONGEST = 700


def functions_of(path: str) -> set[str]:
    return {each.name for each in ast.walk(ast.parse((TOP / path).read_text())) if isinstance(each, ast.FunctionDef)}


CODES = [each for each in explanations() if each[:2] in ("E_", "W_")]


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_test_that_renders_it_and_says_what_to_do(code: str) -> None:
    places = [code in CASES, code in provoking_tests(), code in ONLY_ON_HARDWARE]
    assert places.count(True) == 1
    step = next_step(explanations()[code])
    assert len(step) >= 8
    assert step.endswith(".")
    assert not VAGUE.search(step)


def test_the_tests_that_are_named_exist() -> None:
    named = {test.partition("::")[::2] for test in provoking_tests().values()}
    assert not {f"{path}::{name}" for path, name in named if name not in functions_of(path)}


def test_nothing_is_named_for_a_code_that_is_gone() -> None:
    assert {*CASES, *provoking_tests(), *ONLY_ON_HARDWARE} <= set(explanations())


@pytest.mark.slow
@pytest.mark.sanitized
def test_each_of_them_does_render_its_code(tmp_path: Path) -> None:
    found = provoked(tmp_path)
    missing = set(CODES) - set(ONLY_ON_HARDWARE) - set(found.texts) - found.skipped
    assert missing == set(), found.printed[-4000:]
    assert len(found.skipped) < len(CODES) / 10
    rules: dict[str, Callable[[str], object]] = {
        "avoided": AVOIDED.search,
        "long": lambda text: len(text) > LONGEST or text.count("\n") > 1,
        "not filled in": lambda text: not text or re.search(r"\{[a-z_.]+\}|\bNone\b|<.* object at", text),
    }
    broken = {(rule, code): text for rule, fails in rules.items() for code, text in found.texts.items() if fails(text)}
    assert broken == {}
