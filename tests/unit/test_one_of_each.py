"""What is counted is in the singular where it is one, and links are their texts on a terminal."""

from __future__ import annotations

import re

import pytest
from command_line import output
from fairlap.explanations import explanations
from fairlap.request.fields.scale import Scale
from fairlap.stability.document import _threads


def test_stability_on_one_core_compares_with_one_thread() -> None:
    assert [_threads(1), _threads(2)] == ["one thread", "2 threads"]


def test_a_scale_says_of_one_core_that_it_is_one() -> None:
    assert re.search(r"\b1 cores\b", Scale(2).why_not_on(1)) is None


@pytest.mark.parametrize("code", [code for code, text in explanations().items() if "](" in text])
def test_an_explanation_on_a_terminal_has_the_text_of_a_link_alone(code: str) -> None:
    assert "](" not in output("explain", code)
