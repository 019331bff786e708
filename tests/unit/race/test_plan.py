"""A plan draws every block on its own, is the same for the same seed, and survives being saved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.launch.runners import Runner
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan, with_blocks
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.race.processes.block_worker import CONTROLLED_MEMORY, environment_of
from fairlap.request.names import Contestants
from fairlap.request.work import Conditions, Work

CORES = (0, 1, 2, 3)


def drawn(
    blocks: int = 8,
    conditions: Conditions | Literal["both"] = "controlled",
    seed: int = 1,
    threads: int = 2,
    data_seeds: tuple[int, ...] = (0,),
    until_decided: bool = False,
) -> Plan:
    return draw_plan(
        Contestants("torch,jax,tensorflow:xla"),
        (Work("mlp", 1), Work("gemm", 4, "grad")),
        blocks=blocks,
        conditions=conditions,
        threads=threads,
        available_cores=CORES,
        seed=seed,
        data_seeds=data_seeds,
        until_decided=until_decided,
    )


def test_every_block_runs_every_contestant_once() -> None:
    for block in drawn().blocks:
        assert sorted(block.order) == [0, 1, 2]


def test_every_work_gets_as_many_blocks_as_asked_for_under_each_of_the_conditions() -> None:
    counted = Counter((block.work, block.conditions) for block in drawn(blocks=8).blocks)
    assert counted == {(0, "controlled"): 8, (1, "controlled"): 8}
    both = Counter((block.work, block.conditions) for block in drawn(blocks=8, conditions="both").blocks)
    assert set(both.values()) == {8}
    assert len(both) == 4


def test_data_seeds_take_turns_and_the_first_two_blocks_share_one() -> None:
    seeds = [block.data_seed for block in drawn(blocks=13, data_seeds=(0, 1, 2)).blocks if block.work == 0]
    assert seeds[0] == seeds[1]
    assert set(Counter(seeds[1:]).values()) == {4}


def test_processes_start_side_by_side_only_in_a_race_that_ends_when_it_knows() -> None:
    assert {block.started for block in drawn().blocks} == {"alone"}
    started = [block.started for block in drawn(until_decided=True).blocks if block.work == 0]
    assert started == ["alone"] + ["together"] * 7


def test_the_same_seed_draws_the_same_plan_and_another_seed_another() -> None:
    assert drawn(seed=5) == drawn(seed=5)
    assert drawn(seed=5).blocks != drawn(seed=6).blocks


def test_orders_hash_seeds_padding_and_cores_differ_between_blocks() -> None:
    blocks = [block for block in drawn(blocks=40).blocks if block.conditions == "controlled"]
    assert len({block.order for block in blocks}) == 6  # all orders of three
    assert len({block.hash_seed for block in blocks}) == len(blocks)
    assert len({block.padding_bytes for block in blocks}) > len(blocks) // 2
    assert len({block.cores for block in blocks}) == 6  # all pairs of four cores
    assert all(len(block.cores) == 2 for block in blocks)


def test_as_found_processes_may_use_every_core() -> None:
    assert {block.cores for block in drawn(conditions="as-found").blocks} == {CORES}


def test_no_contestant_is_first_more_often_than_chance_allows() -> None:
    blocks = drawn(blocks=300, conditions="as-found").blocks
    first = Counter(block.order[0] for block in blocks)
    assert all(140 <= first[contestant] <= 260 for contestant in range(3))  # 200 of 600 expected, five deviations


def test_a_saved_plan_comes_back_equal(tmp_path: Path) -> None:
    save_plan(drawn(), tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == drawn()
    (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "plan.json").read_bytes())
    assert load_plan(tmp_path / "marked.json") == drawn()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"format": 2', '"format": 99'), "plan format 99"),
        (('"threads": 2', '"threads": "two"'), r"Expected `int`, got `str` - at `\$.threads`"),
        (('"work": 1', '"work": 7'), "does not run every contestant once"),
        (('"padding_bytes": ', '"padding_bytes": 1000000000'), "bytes of padding"),
        (('"padding_bytes": ', '"padding_bytes": -1'), "bytes of padding"),
        (('"prepare_s": 900.0', '"prepare_s": 1e300'), r"at `\$.limits.prepare_s`"),
        (('"measure_s": 600.0', '"measure_s": -1'), r"at `\$.limits.measure_s`"),
        (('"seconds": 0.4', '"seconds": 1e300'), r"seconds`"),
        (('"rounds": 10', '"rounds": 100000000000'), r"rounds`"),
        (("{", "rubbish"), "is not a plan"),
    ],
)
def test_a_spoiled_plan_is_refused_by_the_place_that_is_wrong(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    path = tmp_path / "plan.json"
    save_plan(drawn(), path)
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(InvalidRequest, match=words):
        load_plan(path)


def test_a_plan_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"nowhere\.json cannot be read: No such file"):
        load_plan(tmp_path / "nowhere.json")


@pytest.mark.parametrize(("blocks", "threads"), [(0, 1), (-1, 1), (1, 0), (1, 5)])
def test_a_plan_that_cannot_be_run_is_refused(blocks: int, threads: int) -> None:
    with pytest.raises(InvalidRequest, match="must"):
        drawn(blocks=blocks, threads=threads)


def test_controlled_processes_have_the_memory_settings_and_as_found_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in CONTROLLED_MEMORY:
        monkeypatch.delenv(name, raising=False)
    runner = Runner(next(iter(Contestants("numpy"))), environment={"OMP_NUM_THREADS": "2"})
    for block in drawn(conditions="both").blocks:
        variables = environment_of(block, runner)
        assert all((name in variables) == (block.conditions == "controlled") for name in CONTROLLED_MEMORY)
        assert variables["PYTHONHASHSEED"] == str(block.hash_seed)
        assert len(variables["FAIRLAP_PADDING"]) == block.padding_bytes
        assert variables["OMP_NUM_THREADS"] == "2"
        assert variables["ORT_DISABLE_TELEMETRY"] == "1"


@pytest.mark.parametrize("conditions", ["controlled", "both"])
def test_further_blocks_follow_the_first_ones_and_are_the_same_each_time(
    conditions: Conditions | Literal["both"],
) -> None:
    plan = msgspec.structs.replace(drawn(blocks=4, conditions=conditions, data_seeds=(0, 1, 2)), budget_s=8.0)
    more = with_blocks(plan, 10)
    assert more.blocks[: len(plan.blocks)] == plan.blocks
    assert [block.number for block in more.blocks] == list(range(len(plan.blocks) * 10 // 4))
    counted = Counter((block.work, block.conditions) for block in more.blocks)
    assert set(counted.values()) == {10}
    assert {block.data_seed for block in more.blocks[len(plan.blocks) :]} == {0, 1, 2}
    assert len({block.order for block in more.blocks[len(plan.blocks) :]}) > 1
    assert more == with_blocks(plan, 10)
    assert (more.budget_s, more.seed, more.works) == (None, plan.seed, plan.works)
    assert with_blocks(more, 4).blocks == plan.blocks


def test_a_number_of_blocks_takes_the_place_of_a_decision() -> None:
    few = with_blocks(drawn(blocks=40, until_decided=True), 5)
    assert (len(few.blocks), few.until_decided) == (10, False)
    with pytest.raises(InvalidRequest):
        with_blocks(few, 0)
