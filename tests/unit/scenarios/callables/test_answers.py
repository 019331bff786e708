"""Answers of callables: right ones are ranked, wrong ones are named, and what cannot be compared says so."""

from __future__ import annotations

import ctypes
import json
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import pytest
from click.testing import CliRunner
from fairlap.cli import cli
from fairlap.engine.calls_in_turns import Arguments
from fairlap.errors import InvalidRequest
from fairlap.scenarios.callables.answers.arrays import NotComparable, in_same_layout, leaves_of
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.first_calls import times_longer_when_new
from trust.callable_answers.__main__ import verdict_on_right, verdict_on_wrong
from trust.callable_answers.wrong import WRONG, Wrong, add, dot, draw

QUICK: dict[str, Any] = {"blocks": 6, "seconds": 0.002, "seed": 5}


@pytest.mark.parametrize("number", range(48))
def test_right_callables_are_not_accused(number: int) -> None:
    assert verdict_on_right(number) == {}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_wrong_callables_are_accused(wrong: Wrong) -> None:
    assert verdict_on_wrong(wrong) in {"E_OUTPUT", "E_STALE_ANSWER", "E_DEFERRED_WORK", "E_ARGUMENT_CHANGED"}


def test_a_wrong_callable_is_shown_but_not_ranked() -> None:
    def ends_early(a: Any, b: Any) -> Any:
        return np.dot(a[:-1], b[:-1])

    found = fairlap.compare({"wrong": ends_early, "a": dot, "b": np.dot}, reference=dot, inputs=draw, **QUICK)
    assert [each.name for each in found.rows][-1] == "wrong"
    assert found.answers.wrong["wrong"].code == "E_OUTPUT"
    assert {name for each in found.comparisons for name in (each.a, each.b)} == {"a", "b"}
    assert found.answers.compared == "reference"
    document = found.to_dict()["answers"]
    assert document["wrong"]["wrong"]["code"] == "E_OUTPUT"
    assert document["checked_calls"] > document["timed_calls"] > 0


def test_without_a_reference_the_first_callable_serves() -> None:
    found = fairlap.compare({"a": add, "b": lambda a, b: b + a}, inputs=draw, **QUICK)
    assert (found.answers.compared, found.answers.reference, found.answers.wrong) == ("each other", "a", {})
    other = fairlap.compare({"a": add, "b": lambda a, b: b - a}, inputs=draw, **QUICK)
    assert set(other.answers.wrong) == {"b"}
    assert not other.comparisons


def test_callables_without_inputs_are_compared_by_what_they_return() -> None:
    same = fairlap.compare({"a": lambda: sum(range(50)), "b": lambda: 1225}, **QUICK)
    assert same.answers.compared == "each other"
    other = fairlap.compare({"a": lambda: sum(range(50)), "b": lambda: 1226}, **QUICK)
    assert other.answers.wrong["b"].code == "E_OUTPUT"
    as_asked = fairlap.compare({"a": lambda: sum(range(50)), "b": lambda: 1226}, any_answers=True, **QUICK)
    assert (as_asked.answers.compared, as_asked.answers.wrong) == ("not", {})
    assert len(as_asked.comparisons) == 1


@pytest.mark.parametrize(
    "callables",
    [
        {"a": lambda: None, "b": lambda: None},
        {"a": object, "b": object},
        {"a": time.perf_counter_ns, "b": time.time},
        {"a": lambda: np.zeros(3), "b": lambda: np.zeros(3)},
    ],
    ids=["nothing", "objects", "another each time", "zeros"],
)
def test_what_proves_nothing_is_not_called_compared(callables: dict[str, Callable[[], object]]) -> None:
    found = fairlap.compare(callables, **QUICK)
    assert found.answers.compared == "not"
    assert found.answers.why_not
    assert len(found.comparisons) == 1
    assert "answers not compared" in str(found).lower()


def test_answers_that_are_kept_by_content_are_found_by_the_time_of_new_ones() -> None:
    kept: dict[bytes, Any] = {}

    def slow(a: Any, b: Any) -> Any:
        return sum(np.sort(a + b + number).sum() for number in range(20))

    def keeping(a: Any, b: Any) -> Any:
        key = a[:8].tobytes()
        if key not in kept:
            kept[key] = slow(a, b)
        return kept[key]

    found = fairlap.compare({"slow": slow, "keeping": keeping}, inputs=draw, blocks=8, seconds=0.01, seed=1)
    assert found.answers.wrong["keeping"].code == "E_KEPT_ANSWERS"
    assert "slow" not in found.answers.wrong


def test_an_answer_that_the_next_call_overwrites_is_noticed() -> None:
    out = np.empty(256, np.float32)

    def into_one_buffer(a: Any, b: Any) -> Any:
        return np.add(a, b, out=out)

    found = fairlap.compare({"new": add, "one": into_one_buffer}, inputs=draw, **QUICK)
    codes = {row.name: {notice.code for notice in row.warnings} for row in found.rows}
    assert "W_ANSWER_OVERWRITTEN" in codes["one"]
    assert "W_ANSWER_OVERWRITTEN" not in codes["new"]
    assert not found.answers.wrong


def test_arguments_that_the_reference_changes_are_its_answer() -> None:
    def negated(a: Any) -> None:
        a *= -1

    def subtracted(a: Any) -> None:
        np.subtract(0, a, out=a)

    def but_one(a: Any) -> None:
        a[:-1] *= -1

    def one(rng: np.random.Generator) -> Any:
        return rng.standard_normal(64)

    found = fairlap.compare({"right": subtracted, "wrong": but_one}, reference=negated, inputs=one, **QUICK)
    assert set(found.answers.wrong) == {"wrong"}
    assert all("W_ARGUMENTS_RESTORED" in {notice.code for notice in row.warnings} for row in found.rows)


def test_native_functions_answer_in_the_memory_that_they_are_given() -> None:
    prototype = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int))

    def increments(cell: Any) -> None:
        cell[0] += 1

    def skips(cell: Any) -> None:
        cell[0] += 2

    def cell(rng: np.random.Generator) -> Any:
        return rng.integers(1, 1000, 1, dtype=np.int32)

    callables = {"right": prototype(increments), "wrong": prototype(skips)}
    found = fairlap.compare(callables, reference=lambda cell: increments(cell), inputs=cell, **QUICK)
    assert set(found.answers.wrong) == {"wrong"}
    assert all("W_ARGUMENTS_CHANGED" in {notice.code for notice in row.warnings} for row in found.rows)


def test_a_callable_that_changes_its_arguments_spoils_none_of_the_others() -> None:
    def grows(a: Any, b: Any) -> Any:
        a += 0.5
        return a + b

    for seed in range(6):
        found = fairlap.compare(
            {"a": add, "grows": grows, "b": add}, reference=add, inputs=draw, **QUICK | {"seed": seed}
        )
        assert {name: each.code for name, each in found.answers.wrong.items()} == {"grows": "E_ARGUMENT_CHANGED"}


def test_sorting_in_place_is_timed_on_what_is_not_sorted_yet() -> None:
    def in_place(a: list[float]) -> None:
        a.sort()

    def another(a: list[float]) -> None:
        a[:] = sorted(a)

    def one(rng: np.random.Generator) -> Any:
        return rng.standard_normal(4000).tolist()

    callables = {"a": in_place, "b": another}
    found = fairlap.compare(callables, reference=in_place, inputs=one, blocks=8, seconds=0.004)
    assert not found.answers.wrong
    values = sorted(np.random.default_rng(0).standard_normal(4000).tolist())
    sorted_already_ns = 1e9 * min(timeit.repeat(values.sort, number=1, repeat=50))
    assert min(row.median_ns for row in found.rows) > 4 * sorted_already_ns


def test_lists_are_put_back_as_well() -> None:
    def numbers(rng: np.random.Generator) -> Any:
        return rng.integers(0, 1000, 200).tolist()

    found = fairlap.compare({"a": list.sort, "b": lambda some: some.sort()}, inputs=numbers, **QUICK)
    assert not found.answers.wrong
    assert all("W_ARGUMENTS_RESTORED" in {notice.code for notice in row.warnings} for row in found.rows)


def test_a_callable_that_exits_raises(tmp_path: Path) -> None:
    def leaves(a: Any, b: Any) -> Any:
        raise SystemExit(0)

    with pytest.raises(fairlap.CallableRaised):
        fairlap.compare({"a": add, "leaves": leaves}, inputs=draw, **QUICK)
    with pytest.raises(InvalidRequest):
        fairlap.compare({"a": add, "b": add}, inputs=lambda rng: leaves(1, 2), **QUICK)


def test_sets_are_compared() -> None:
    def numbers(rng: np.random.Generator) -> Any:
        return rng.integers(0, 1000, 50).tolist()

    found = fairlap.compare(
        {"a": set, "b": lambda some: {*some}, "c": lambda some: {*some[1:]} - {some[0]}}, inputs=numbers, **QUICK
    )
    assert set(found.answers.wrong) == {"c"}


def test_a_torch_callable_is_checked_in_its_own_type() -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")

    def tensors(rng: np.random.Generator, n: int = 32) -> Any:
        return tuple(torch.from_numpy(rng.standard_normal((n, n))).bfloat16() for _ in range(2))

    found = fairlap.compare(
        {
            "right": lambda a, b: a @ b,
            "float": lambda a, b: (a.float() @ b.float()).bfloat16(),
            "wrong": lambda a, b: a * b,
        },
        reference=lambda a, b: a @ b,
        inputs=tensors,
        **QUICK,
    )
    assert set(found.answers.wrong) == {"wrong"}
    assert found.answers.in_float64


@pytest.mark.parametrize(
    "given",
    [np.arange(12.0).reshape(3, 4).T, np.arange(12.0)[::-2], np.arange(24.0).reshape(2, 3, 4)[:, ::2, ::-1]],
    ids=["transposed", "backwards", "both"],
)
def test_a_copy_has_the_layout_of_what_it_copies(given: Any) -> None:
    found = in_same_layout(given)
    assert np.array_equal(found, given)
    assert found.strides == given.strides
    assert not np.shares_memory(found, given)


def test_leaves_are_named_by_where_they_stand() -> None:
    found = leaves_of({"a": (1, np.ones(2)), "b": [1.0, 2.0]}, "it")
    assert set(found) == {"it['a'][0]", "it['a'][1]", "it['b']"}
    with pytest.raises(NotComparable):
        leaves_of(object())


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"inputs": "structural"}, "E_REQUEST"),
        ({"inputs": [draw, "strange"]}, "E_REQUEST"),
        ({"inputs": [draw, draw]}, "E_REQUEST"),
        ({"inputs": lambda rng: 1 / 0}, "E_REFERENCE"),
        ({"inputs": draw, "reference": 5}, "E_REQUEST"),
        ({"inputs": draw, "reference": lambda a, b: 1 / 0}, "E_REFERENCE"),
        ({"inputs": draw, "reference": lambda a, b: None}, "E_REFERENCE"),
        ({"inputs": draw, "reference": add, "any_answers": True}, "E_REQUEST"),
    ],
)
def test_what_cannot_be_compared_is_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        fairlap.compare({"a": add, "b": add}, **options, **QUICK)
    assert refused.value.code == code


MODULE = """
import numpy as np

def draw(rng, n=64):
    return rng.standard_normal(n), rng.standard_normal(n)

def exact(a, b):
    return a @ b

def right(a, b):
    return (a * b).sum()

def wrong(a, b):
    return a[:-1] @ b[:-1]
"""


def test_the_command_checks_answers_and_its_status_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels_to_check.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ["kernels_to_check:right", "kernels_to_check:wrong"]
    options = ["--inputs", "kernels_to_check:draw", "--reference", "kernels_to_check:exact", "--blocks", "6", "--json"]
    failed = CliRunner().invoke(cli, ["time", *names, *options])
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["answers"]["wrong"]["kernels_to_check:wrong"]["code"] == "E_OUTPUT"
    passed = CliRunner().invoke(cli, ["time", names[0], "kernels_to_check:exact", *options])
    assert passed.exit_code == 0
    assert json.loads(passed.stdout)["answers"]["compared"] == "reference"
    one = CliRunner().invoke(cli, ["time", names[0], "--inputs", "kernels_to_check:draw", "--samples", "20", "--json"])
    assert one.exit_code == 0


def test_sums_of_equal_numbers_are_right_in_every_order() -> None:
    def plain(rng: np.random.Generator) -> Any:
        return np.full(9_216, rng.choice([2.437, 0.1, 1 / 3]), np.float32)

    callables: dict[str, Callable[..., object]] = {
        "one by one": lambda x: np.cumsum(x)[-1],
        "but ten": lambda x: x[10:].sum(),
        "in pairs": np.sum,
    }
    found = fairlap.compare(callables, reference=np.sum, inputs=plain, **QUICK)
    assert {name: each.code for name, each in found.answers.wrong.items()} == {"but ten": "E_OUTPUT"}


def _by_identity(kept: dict[int, Any], x: Any) -> Any:
    if id(x) not in kept:
        kept[id(x)] = np.linalg.norm(x)
    return kept[id(x)]


def _by_first_number(kept: dict[float, Any], x: Any) -> Any:
    key = float(x[0])
    if key not in kept:
        kept[key] = np.linalg.norm(x)
    return kept[key]


@pytest.mark.parametrize("keeping", [_by_identity, _by_first_number])
def test_answers_of_a_microsecond_that_are_kept_are_found(keeping: Callable[..., Any]) -> None:
    """One new call among others is longer by that much in any case, so many are timed together."""
    kept: dict[Any, Any] = {}
    callables = {"honest": lambda x: np.linalg.norm(x), "keeping": lambda x: keeping(kept, x)}
    found = fairlap.compare(
        callables,
        inputs=lambda rng: (rng.standard_normal(1000),),
        reference=lambda x: np.sqrt((x * x).sum()),
        blocks=8,
        seconds=0.01,
        seed=1,
    )
    # Where another array has got the address of one that is gone, the answer is wrong as well.
    assert found.answers.wrong["keeping"].code in ("E_KEPT_ANSWERS", "E_OUTPUT", "E_STALE_ANSWER")
    assert "honest" not in found.answers.wrong


def test_a_text_that_keeps_its_hash_accuses_nobody() -> None:
    """Python computes the hash of a text when it is first looked up (docs.python.org, object.__hash__)."""
    table: dict[str, float] = {}
    callables = {"get": lambda text: table.get(text, 1.0), "hash": lambda text: 1.0 + 0.0 * hash(text)}
    found = fairlap.compare(callables, inputs=lambda rng: (str(rng.random()) * 50,), blocks=8, seconds=0.01, seed=1)
    assert found.answers.wrong == {}


@pytest.mark.parametrize("kept", ["text", b"bytes", ["a", "b"], {"key": "text"}])
def test_first_calls_say_nothing_of_arguments_that_keep_their_hash(kept: object) -> None:
    each = Checked("any", lambda *_: 1.0, None)
    assert times_longer_when_new(each, 100.0, lambda: Arguments((kept,), {})) is None
    assert times_longer_when_new(each, 100.0, lambda: Arguments((np.ones(8), kept), {})) is None
    assert times_longer_when_new(each, 100.0, lambda: Arguments((np.ones(8), 3.0), {})) is not None
