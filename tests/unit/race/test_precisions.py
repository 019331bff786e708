"""Races in several precisions: requests that are refused, contestants, rankings, and the error of lower precisions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.render.plan_command import command_of
from fairlap.request.names import Contestants
from fairlap.request.units import Share
from fairlap.results.row import Row
from runs_of_precisions import planned, shown


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "tf32"},
        {"precision": "fp8"},
        {"precision": "fp8", "device": "cuda", "mode": "grad"},
        {"precision": ("fp32", "int8"), "mode": ("infer", "grad")},
        {"precision": "bf16", "max_drop": Share("1%")},
        {"precision": "fp32", "max_drop": Share("1%")},
        {"across_precisions": True},
        {"precision": ("fp32", "bf16"), "across_precisions": True, "data": "synthetic"},
    ],
    ids=[
        "tf32 on a CPU",
        "fp8 on a CPU",
        "gradients in fp8",
        "gradients in int8",
        "a drop from nothing",
        "a drop of nothing",
        "one precision",
        "data",
    ],
)
def test_what_no_contestant_could_do_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        planned(**options)


def test_each_precision_is_a_work_of_its_own() -> None:
    plan = planned(precision=("fp32", "bf16"))
    assert [work.precision for work in plan.works] == ["fp32", "bf16"]
    assert [name.text for name in plan.contestants] == ["torch", "jax"]


def test_across_precisions_every_contestant_races_in_each_within_one_work(tmp_path: Path) -> None:
    plan = planned(precision=("fp32", "bf16"), across_precisions=True, max_drop=Share("1%"))
    assert len(plan.works) == 1
    assert plan.works[0].precisions == ("fp32", "bf16")
    assert [name.text for name in plan.contestants] == ["torch (fp32)", "torch (bf16)", "jax (fp32)", "jax (bf16)"]
    block = plan.blocks[0]
    assert sorted(block.order) == [0, 1, 2, 3]
    assert [plan.work_of(block, place).precision for place in range(4)] == ["fp32", "bf16", "fp32", "bf16"]
    assert {plan.work_of(block, place).together for place in range(4)} == {()}
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan


def test_the_command_in_a_report_draws_the_same_plan() -> None:
    plan = planned(precision=("fp32", "bf16"), across_precisions=True, max_drop=Share("1%"))
    words = command_of(plan).split()
    assert words[words.index("--on") + 1] == "torch,jax"
    assert words[words.index("--precision") + 1] == "fp32,bf16"
    assert words[words.index("--max-drop") + 1] == "0.01"
    assert "--across-precisions" in words


def by_name(rows: Sequence[Row]) -> dict[str, Row]:
    return {row.contestant: row for row in rows}


def test_precisions_are_ranked_with_each_other_in_the_same_blocks() -> None:
    found = shown(planned(precision=("fp32", "bf16"), across_precisions=True))
    rows = by_name(found.rows)
    assert {name: (row.precision, row.ranked_precisions) for name, row in rows.items()} == {
        "torch (fp32)": ("fp32", ["fp32", "bf16"]),
        "torch (bf16)": ("bf16", ["fp32", "bf16"]),
        "jax (fp32)": ("fp32", ["fp32", "bf16"]),
        "jax (bf16)": ("bf16", ["fp32", "bf16"]),
    }
    assert rows["torch (fp32)"].verdict == "slower"
    assert rows["torch (bf16)"].error_drop == pytest.approx(5e-3 - 1e-6)
    assert rows["torch (fp32)"].error_drop == 0.0
    assert rows["torch (bf16)"].zero_weights == 0.25
    assert found.rows == msgspec.json.decode(msgspec.json.encode(list(found.rows)), type=list[Row])


def test_a_drop_beyond_the_bound_is_shown_with_its_times_and_not_ranked() -> None:
    options = {"precision": ("fp32", "bf16", "int8"), "max_drop": Share("1%"), "contestants": Contestants("torch,jax")}
    rows = by_name(shown(planned(across_precisions=True, **options)).rows)
    row = rows["torch (int8)"]
    assert (row.outcome, row.code, row.place, row.verdict) == ("unqualified", "E_MAX_DROP", None, None)
    assert row.latency_p50_ns is not None
    assert row.error_drop == pytest.approx(4e-2 - 1e-6)
    assert rows["torch (bf16)"].outcome == "finished"
    assert {name for name, each in rows.items() if each.place is None} == {"torch (int8)", "jax (int8)"}


def test_the_bound_holds_for_separate_works_too_and_their_drop_is_from_fp32() -> None:
    found = shown(planned(precision=("fp32", "bf16"), max_drop=Share("0.1%")))
    assert {(row.precision, row.outcome, row.code) for row in found.rows} == {
        ("fp32", "finished", ""),
        ("bf16", "unqualified", "E_MAX_DROP"),
    }


def test_where_answers_are_scored_the_bound_is_for_the_score() -> None:
    options = {"precision": ("fp32", "bf16", "int8"), "max_drop": Share("1%"), "across_precisions": True}
    rows = by_name(shown(planned(**options), {"fp32": 0.9, "bf16": 0.895, "int8": 0.85}).rows)
    assert rows["torch (fp32)"].accuracy_drop == 0.0
    assert rows["torch (bf16)"].accuracy_drop == pytest.approx(0.005)
    assert rows["jax (int8)"].accuracy_drop == pytest.approx(0.05)
    unqualified = {name for name, row in rows.items() if row.code == "E_MAX_DROP"}
    assert unqualified == {"torch (int8)", "jax (int8)"}
    rows = by_name(shown(planned(**options), {"fp32": 0.9, "bf16": 0.9, "int8": 0.9}).rows)
    assert {row.outcome for row in rows.values()} == {"finished"}, "though the error of int8 grew by 4 %"


def test_without_fp32_there_is_no_drop() -> None:
    rows = shown(planned(precision="bf16")).rows
    assert {row.error_drop for row in rows} == {None}
    assert {row.absent["error_drop"] for row in rows} == {"fp32 was not raced"}
