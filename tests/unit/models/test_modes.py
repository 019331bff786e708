"""A mode is one entry of facts."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import fairlap
import pytest
from fairlap.models.modes import MODES, modes_in
from fairlap.race.equal_work.mode_side import ModeSide, mode_side
from fairlap.request.work import Mode


def test_every_mode_has_facts() -> None:
    assert set(MODES) == set(get_args(Mode))


def compared_with_modes(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Compare):
            for each in (node.left, *node.comparators):
                named = ast.walk(each) if isinstance(each, ast.Tuple | ast.Set | ast.List) else (each,)
                values = {str(part.value) for part in named if isinstance(part, ast.Constant)}
                if values & set(MODES):
                    yield f"{file.name}:{node.lineno}"


@pytest.mark.parametrize("room", ["race", "results", "render", "store", "history", "launch", "worker", "request"])
def test_no_room_asks_which_mode_it_is(room: str) -> None:
    files = (Path(fairlap.__file__).parent / room).rglob("*.py")
    assert [each for file in files for each in compared_with_modes(file)] == []


def test_ranks_share_what_has_parts_of_a_batch_and_a_call_answers_what_it_is_given_where_it_is_an_inference() -> None:
    assert {mode for mode, facts in MODES.items() if facts.shared_by_ranks} == {"infer", "train"}
    assert {mode for mode, facts in MODES.items() if facts.answers_inputs} == {"infer"}
    assert {mode for mode, facts in MODES.items() if facts.holds_labels} == {"grad"}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_names_what_proves_its_answers(mode: Mode) -> None:
    assert isinstance(mode_side(mode), ModeSide)


def test_a_framework_has_the_modes_that_name_it() -> None:
    assert "simulate" in modes_in("jax")
    assert "simulate" not in modes_in("tensorflow")
    assert "jvp" in modes_in("tensorflow")
    assert modes_in("mxnet") == ()
