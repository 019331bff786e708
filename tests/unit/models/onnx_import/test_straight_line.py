"""A model's steps, written as one function, compute what they compute one after the other."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
from fairlap.models.onnx_import.layout import Step
from fairlap.models.onnx_import.straight_line import straight_line


class Number:
    """A value whose end is seen."""

    def __init__(self, value: int) -> None:
        self.value = value


def added(*values: Number | None) -> Number:
    return Number(sum(each.value for each in values if each is not None))


def halves(value: Number) -> tuple[Number, Number]:
    return Number(value.value // 2), Number(value.value - value.value // 2)


def written(steps: list[Step], last_uses: list[tuple[str, ...]], outputs: list[str], enter: Any = None) -> Any:
    return straight_line(steps, last_uses, {"seven": Number(7)}, ["a", "b"], ["w"], outputs, enter)


def test_values_go_from_step_to_step_by_their_names() -> None:
    steps = [
        Step(added, ("a", "", "seven"), ("sum",)),
        Step(halves, ("sum",), ("less", "more")),
        Step(added, ("more", "w"), ("end",)),
    ]
    compute = written(steps, [("a",), ("sum", "less"), ("more", "w")], ["end", "b", "seven"])
    found = compute({"a": Number(4), "b": Number(9)}, {"w": Number(100)})
    assert [each.value for each in found] == [106, 9, 7]


def test_the_first_of_several_results_is_that_of_a_step_with_one_output() -> None:
    [found] = written([Step(halves, ("a",), ("less",))], [()], ["less"])({"a": Number(5), "b": Number(0)}, {})
    assert found.value == 2


def test_one_result_is_the_first_of_several_outputs() -> None:
    [found] = written([Step(added, ("a",), ("sum", "unused"))], [()], ["sum"])({"a": Number(5), "b": Number(0)}, {})
    assert found.value == 5


def test_inputs_and_weights_enter_once_where_they_are_used() -> None:
    entered = list[int]()

    def enter(value: Number) -> Number:
        entered.append(value.value)
        return value

    steps = [Step(added, ("a", "w"), ("once",)), Step(added, ("once", "w"), ("twice",))]
    [found] = written(steps, [("a",), ("once", "w")], ["twice"], enter)(
        {"a": Number(1), "b": Number(2)}, {"w": Number(3)}
    )
    assert (found.value, entered) == (7, [1, 3])


def test_a_value_ends_with_its_last_use() -> None:
    made = list[weakref.ref[Number]]()

    def noted(*values: Number | None) -> Number:
        assert [each() is None for each in made[:-1]] == [True] * len(made[:-1])
        found = added(*values)
        made.append(weakref.ref(found))
        return found

    steps = [Step(noted, (before, "seven"), (after,)) for before, after in (("a", "x"), ("x", "y"), ("y", "z"))]
    [found] = written(steps, [("a",), ("x",), ("y",)], ["z"])({"a": Number(0), "b": Number(0)}, {})
    assert found.value == 21


@pytest.mark.parametrize("name", ["x y", "v = 1\n", "None", "import os", "'", "é"])
def test_no_name_of_a_file_is_read_as_code(name: str) -> None:
    compute = straight_line([Step(added, (name, name), (f"{name}'",))], [(name,)], {}, [name], [], [f"{name}'"], None)
    assert [each.value for each in compute({name: Number(3)}, {})] == [6]
