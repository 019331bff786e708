"""Callables over axes, timed by an engine with planted costs: verdicts, costs and crossings are the planted ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import fairlap
import numpy as np
import pytest
from fairlap.engine.measurement import CallableRaised
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.render.encoders import encoded
from fairlap.render.encoders.text import text_of
from fairlap.scenarios.callables import turns
from fairlap.scenarios.callables.axes import over_axes
from fairlap.scenarios.callables.render.axes_chart import chart_points
from fairlap.scenarios.callables.render.axes_document import document_of
from fairlap.verdict import Crossing, Verdict

pytestmark = pytest.mark.sanitized  # the engine is replaced, but for one test of times

Cost = Callable[[float], float]


class PlantedEngine:
    """Gives the cost at the size that a callable is bound to, times noise of the call and of the moment."""

    def __init__(self, costs: Mapping[str, Cost], stop_after: int | None) -> None:
        self.costs, self.stop_after = costs, stop_after
        self.rng, self.calls = random.Random(1), list[tuple[str, int]]()
        self.slower = 1.0

    def __call__(self, fn: Any, *, name: str, **asked: Any) -> SimpleNamespace:
        size = len(asked["args"][0])
        self.calls.append((name, size))
        self.slower *= self.rng.lognormvariate(0, 0.01)  # the machine wanders
        noise = self.slower * self.rng.lognormvariate(0, 0.01)
        return SimpleNamespace(
            interrupted=len(self.calls) == self.stop_after,
            calls_per_sample=7_000,
            warnings=(),
            elapsed_s=1.0,
            median_ns=self.costs[name](size) * noise,
            samples=100,
            headline=SimpleNamespace(name="wall_ns", gate="", sm_mhz=None),
        )


Install = Callable[..., PlantedEngine]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(stop_after: int | None = None, **costs: Cost) -> PlantedEngine:
        made = PlantedEngine(costs, stop_after)
        monkeypatch.setattr(turns, "timed", made)
        monkeypatch.setattr(turns.Turns, "_in_rounds", lambda self, firsts: None)
        monkeypatch.setattr(turns, "wait_until_quiet", lambda at_most_s, cpu_of_others_before_s: 0.0)
        return made

    return install


def draw(rng: np.random.Generator, n: int = 4) -> np.ndarray[Any, Any]:
    return rng.random(n)


def nothing(array: object) -> None:
    return None


TWO = {"flat": nothing, "steep": nothing}


def test_planted_costs_and_their_crossing_are_found(engine: Install) -> None:
    engine(flat=lambda n: 2000 + 0.5 * n, steep=lambda n: 500 + 4 * n)  # equal at 429
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": "16..16K:x2"}, seed=3)
    assert (found.size_axis, len(found.points), found.baseline) == ("n", 11, "flat")
    compared = found.at(n=16).between("steep", "flat")
    assert compared is not None
    assert compared.verdict is Verdict.FASTER
    [crossing] = found.crossings
    assert crossing.crossing == Crossing("steep", "flat", 256, 512)
    flat, steep = (each.cost for each in found.costs)
    assert flat is not None
    assert steep is not None
    assert (flat.law, steep.law) == ("linear", "linear")
    assert steep.slope_ns.value / flat.slope_ns.value == pytest.approx(8, rel=0.1)  # the machine's speed cancels
    assert flat.overhead_ns.value / steep.overhead_ns.value == pytest.approx(4, rel=0.1)


def test_the_error_rate_is_shared_by_all_points(engine: Install) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 110)
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": range(1, 11)}, blocks=24, seed=3, alpha=0.05)
    assert [each.comparisons[0].level for each in found.points] == pytest.approx([0.005] * 10)


@pytest.mark.slow
def test_equal_callables_are_seldom_claimed_to_differ_anywhere(engine: Install) -> None:
    engine(flat=lambda n: 1000 + n, steep=lambda n: 1000 + n)
    runs, false = 60, 0
    for seed in range(runs):
        found = fairlap.compare_over(TWO, inputs=draw, axes={"n": "16..256:x2"}, blocks=24, seed=seed)
        verdicts = {each.comparisons[0].verdict for each in found.points}
        false += bool(verdicts & {Verdict.FASTER, Verdict.SLOWER})
    assert false <= 9  # 5 % of 60, and three and a half standard errors


def test_every_point_is_in_every_block_in_a_drawn_order(engine: Install) -> None:
    made = engine(flat=lambda n: 100, steep=lambda n: 100)
    fairlap.compare_over(TWO, inputs=draw, axes={"n": (1, 2, 3)}, blocks=6, seed=3)
    blocks = np.array([size for _, size in made.calls[6:]]).reshape(6, 6)[:, ::2]
    assert (np.sort(blocks, axis=1) == [1, 2, 3]).all()
    assert len({tuple(block) for block in blocks}) > 1


def test_a_clear_comparison_has_24_blocks_for_its_costs(engine: Install) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 150)
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": (1, 2)})
    assert found.blocks >= 24
    assert "every comparison is decided" in found.ended_early


def test_a_budget_ends_all_points_together(engine: Install) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 100)
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": (1, 2)}, budget=1e-6)
    assert found.blocks == 1
    assert all(each.why_no_verdict for each in found.points)


def test_a_target_ends_when_every_interval_is_narrow(engine: Install) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 150)
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": (1, 2)}, target=0.05)
    assert 12 <= found.blocks <= 60
    assert "target met" in found.ended_early


@pytest.mark.slow
def test_types_and_layouts_are_curves_of_their_own(engine: Install) -> None:
    engine(flat=lambda n: 100 + n, steep=lambda n: 100 + 2 * n)
    axes = {"n": "16..256:x2", "dtype": ("float32", "float64"), "layout": ("contiguous", "strided")}
    found = fairlap.compare_over(TWO, inputs=draw, axes=axes, blocks=8)
    assert len(found.points) == 20
    assert len(found.costs) == 8
    assert found.costs[0].others == {"dtype": "float32", "layout": "contiguous"}
    assert b"dtype=float64, layout=strided" in encoded(document_of(found), "svg")


def test_without_an_axis_of_several_numbers_there_is_a_table_and_no_curve(engine: Install) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 150)
    found = fairlap.compare_over(TWO, inputs=draw, axes={"dtype": ("float32", "float64"), "n": (4,)}, blocks=8)
    assert (found.size_axis, found.costs, found.crossings) == ("", (), ())
    assert b"float64" in encoded(document_of(found), "html")
    with pytest.raises(InvalidRequest) as error:
        encoded(document_of(found), "svg")
    assert error.value.code == "E_AXIS"


def test_a_callable_that_raises_at_a_point_is_excluded_there_alone(engine: Install) -> None:
    def fails_above_2(array: np.ndarray[Any, Any]) -> None:
        if array.size > 2:
            raise ValueError("too long")

    engine(flat=lambda n: 100, steep=lambda n: 150, third=lambda n: 200)
    found = fairlap.compare_over(
        {**TWO, "third": fails_above_2}, inputs=draw, axes={"n": (1, 2, 3)}, blocks=8, baseline="steep"
    )
    assert [len(each.rows) for each in found.points] == [3, 3, 2]
    assert list(found.at(n=3).excluded) == ["third"]
    assert [each.failed for each in found.points] == ["", "", ""]


def test_a_point_that_fails_leaves_the_others(engine: Install) -> None:
    def fails_at_2(rng: np.random.Generator, n: int) -> object:
        if n == 2:
            raise OSError("no such file")
        return rng.random(n)

    engine(flat=lambda n: 100, steep=lambda n: 150)
    found = fairlap.compare_over(TWO, inputs=fails_at_2, axes={"n": (1, 2, 3)}, blocks=8)
    assert [each.code for each in found.points] == ["", "E_DRAW", ""]
    assert [each.blocks for each in found.points] == [8, 0, 8]


def test_where_every_point_fails_the_first_reason_is_the_error(engine: Install) -> None:
    def fails(array: object) -> None:
        raise ValueError

    engine()
    with pytest.raises(FairlapError) as error:
        fairlap.compare_over({"a": fails, "b": nothing}, inputs=draw, axes={"n": (1, 2)})
    assert error.value.code == "E_POINT"


def test_a_callable_that_raises_in_the_middle_keeps_the_blocks_before(
    engine: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine(flat=lambda n: 100, steep=lambda n: 150)

    def raising(fn: Any, *, name: str, **asked: Any) -> SimpleNamespace:
        found = made(fn, name=name, **asked)
        if len(made.calls) > 40 and len(asked["args"][0]) == 1:
            raise CallableRaised(f"{name} raised ValueError", found)  # type: ignore[arg-type]
        return found

    monkeypatch.setattr(turns, "timed", raising)
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": (1, 2)}, blocks=16)
    assert found.at(n=1).code == "E_CALLABLE_RAISED"
    assert 6 <= found.at(n=1).blocks < 16
    assert found.at(n=1).comparisons
    assert found.at(n=2).blocks == 16


def test_inputs_that_do_not_fit_into_memory_together_are_refused_at_their_point(
    engine: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 150)
    monkeypatch.setattr(over_axes, "available_memory_bytes", lambda: 2 * 10 * 8 * 1500)
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": (1000, 1001, 10)}, blocks=8)
    assert [each.code for each in found.points] == ["", "", "E_POINT"]
    assert found.points[0].point["n"] == 10


def test_ctrl_c_keeps_the_complete_blocks(engine: Install) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 150, stop_after=4 + 7 * 4 + 3)
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": (1, 2)}, blocks=16)
    assert found.interrupted
    assert {each.blocks for each in found.points} == {7, 8}
    assert all(each.comparisons for each in found.points)


def test_the_result_is_plain_json_and_a_text(engine: Install) -> None:
    engine(flat=lambda n: 100 + n, steep=lambda n: 150 + n)
    found = fairlap.compare_over(
        TWO, inputs=draw, axes={"n": (1, 2), "dtype": (np.float32, float)}, blocks=8, bytes_per_call=lambda n: 8 * n
    )
    document = json.loads(json.dumps(found.to_dict(raw=True)))
    assert document["axes"] == {"n": [1, 2], "dtype": ["float32", "float64"]}
    assert len(document["points"][0]["rows"][0]["block_medians_ns"]) == 8
    assert document["points"][0]["roof_shares"]["flat"]["roof"]
    assert "block_medians_ns" not in found.to_dict()["points"][0]["rows"][0]
    assert repr(found) == str(found)
    assert len(text_of(document_of(found)).splitlines()) > 6
    lines = encoded(document_of(found), "csv").decode().splitlines()
    assert len(lines) == 1 + 4 * 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"callables": {"a": nothing}},
        {"baseline": "c"},
        {"budget": -1},
        {"alpha": 2.0},
        {"seed": -1},
        {"blocks": 0},
        {"axes": {}},
        {"inputs": 3},
        {"inputs": [draw, "odd"]},
        {"any_answers": True, "reference": draw},
        {"target": 1.5},
    ],
)
def test_what_cannot_be_honoured_is_refused(engine: Install, wrong: dict[str, Any]) -> None:
    made = engine(flat=lambda n: 100, steep=lambda n: 150)
    asked: dict[str, Any] = {"callables": TWO, "inputs": draw, "axes": {"n": (1, 2)}} | wrong
    with pytest.raises(InvalidRequest):
        fairlap.compare_over(asked.pop("callables"), **asked)
    assert made.calls == []


def test_a_callable_that_works_on_after_its_calls_has_no_place_in_chart_and_cost(
    engine: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(flat=lambda n: 100 + n, steep=lambda n: 150 + n)
    late = "other threads worked on"
    monkeypatch.setattr(turns.Arm, "why_excluded", property(lambda arm: late if arm.name == "steep" else ""))
    found = fairlap.compare_over(TWO, inputs=draw, axes={"n": "16..256:x2"}, blocks=8)
    assert [each.excluded for each in found.points] == [{"steep": late}] * 5
    assert all(each.why_no_verdict for each in found.points)
    flat, steep = found.costs
    assert flat.cost is not None
    assert steep.cost is None
    assert steep.absent
    assert {point["callable"] for point in chart_points(found, found.points)} == {"flat"}


def right(array: np.ndarray[Any, Any]) -> float:
    return float(array.sum())


def wrong_from_64(array: np.ndarray[Any, Any]) -> float:
    return float(array[:63].sum())


def test_a_callable_that_answers_wrong_is_ranked_only_where_it_is_right(engine: Install) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 150)
    callables = {"flat": wrong_from_64, "steep": right}
    found = fairlap.compare_over(callables, inputs=draw, axes={"n": (32, 128)}, blocks=8, reference=right)
    few, many = found.points
    assert few.answers is not None
    assert (few.answers.compared, dict(few.answers.wrong)) == ("reference", {})
    assert few.comparisons
    assert many.answers is not None
    assert many.answers.wrong["flat"].code == "E_OUTPUT"
    assert not many.comparisons
    assert found.wrong == {"flat"}


def test_structural_inputs_find_what_no_point_would(engine: Install) -> None:
    engine(flat=lambda n: 100, steep=lambda n: 150)
    callables = {"flat": wrong_from_64, "steep": right}
    found = fairlap.compare_over(
        callables, inputs=[draw, "structural"], axes={"n": (16, 32)}, blocks=8, reference=right
    )
    assert found.wrong == {"flat"}
    assert all(list(each.excluded) == ["flat"] for each in found.points)


def test_structural_inputs_are_of_the_type_of_the_point(engine: Install) -> None:
    def in_float32(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.astype(np.float32) * 2

    def doubled(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array * 2

    engine(flat=lambda n: 100, steep=lambda n: 150)
    axes = {"n": (16,), "dtype": ("float32", "float64")}
    callables = {"flat": in_float32, "steep": doubled}
    found = fairlap.compare_over(callables, inputs=[draw, "structural"], axes=axes, blocks=8, reference=doubled)
    assert [list(each.excluded) for each in found.points] == [[], ["flat"]]


def test_a_reference_that_raises_fails_its_point(engine: Install) -> None:
    def raises_at_2(array: np.ndarray[Any, Any]) -> float:
        if array.size == 2:
            raise ValueError("odd")
        return right(array)

    engine(flat=lambda n: 100, steep=lambda n: 150)
    callables = {"flat": right, "steep": right}
    found = fairlap.compare_over(callables, inputs=draw, axes={"n": (2, 3)}, blocks=8, reference=raises_at_2)
    assert [bool(each.code) for each in found.points] == [True, False]
    assert found.at(n=3).blocks == 8


@pytest.mark.slow
def test_a_real_sum_costs_what_a_loop_by_hand_finds() -> None:
    import time

    def numbers(rng: np.random.Generator, n: int) -> object:
        return (rng.random(n).tolist(),)

    sizes = [4096 * 2**place for place in range(6)]
    found = fairlap.compare_over(
        {"sum": sum, "max": max}, inputs=numbers, axes={"n": sizes}, budget=10, any_answers=True
    )
    cost = found.costs[0].cost
    assert cost is not None, found.costs[0].absent
    data = np.random.default_rng(1).random(sizes[-1]).tolist()
    by_hand_ns = []
    for _ in range(40):
        began_ns = time.perf_counter_ns()
        sum(data)
        by_hand_ns.append(time.perf_counter_ns() - began_ns)
    exponent = 1.0 if cost.exponent is None else cost.exponent.value
    assert exponent == pytest.approx(1, abs=0.15)
    assert 0.5 < cost.time_ns(sizes[-1]) / float(np.median(by_hand_ns)) < 2
