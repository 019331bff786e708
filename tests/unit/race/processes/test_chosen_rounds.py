"""How many rounds a block has follows from the plan and from what earlier blocks left in the store."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from fairlap.race.planning.plan import Measuring, Plan
from fairlap.race.processes.chosen_rounds import rounds_of, with_rounds_of
from fairlap.request.work import Conditions, Work
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from small_races import run_race, small_plan


def planned(
    contestants: str = "example,example:slow", *, conditions: Conditions = "controlled", **options: object
) -> Plan:
    options = {"blocks": 6, "until_decided": True, "measuring": Measuring(seconds=0.04), **options}
    return small_plan(contestants, Work("mlp", 2), conditions=conditions, **options)


def processes_of(plan: Plan, blocks: int, *, processes_s: float = 2.0, rounds: int = 10) -> list[ProcessResult]:
    """Of equal contestants whose rounds differ by far more than their processes, as a small work's do."""
    rng, found = np.random.default_rng(1), []
    for block in plan.blocks[:blocks]:
        for place, name in enumerate(plan.contestants):
            own = ProcessResult(block.number, place, name.text, plan.works[block.work].id, block.conditions)
            own.rounds_ns = (1e6 * np.exp(0.1 * rng.normal(size=rounds))).tolist()
            own.in_rounds_s = 0.05 * rounds
            own.elapsed_s = processes_s + own.in_rounds_s
            found.append(own)
    return found


@pytest.mark.usefixtures("example")
class TestChoice:
    def test_three_whole_blocks_come_before_a_choice(self) -> None:
        plan = planned()
        processes = processes_of(plan, 4)
        assert rounds_of(plan, plan.blocks[2], processes) == 10, "only blocks before it count"
        assert rounds_of(plan, plan.blocks[4], processes) > 10
        processes[0].outcome = processes[2].outcome = "crash"
        assert rounds_of(plan, plan.blocks[4], processes) == 10

    def test_the_same_results_give_the_same_rounds_whoever_had_which(self) -> None:
        plan = planned()
        processes = processes_of(plan, 4)
        chosen = rounds_of(plan, plan.blocks[4], processes)
        for one, other in zip(processes[::2], processes[1::2], strict=True):
            if one.block % 2:
                one.rounds_ns, other.rounds_ns = other.rounds_ns, one.rounds_ns
        assert rounds_of(plan, plan.blocks[4], processes) == chosen
        stored = msgspec.json.decode(msgspec.json.encode(processes), type=list[ProcessResult])
        assert rounds_of(plan, plan.blocks[4], stored) == chosen

    def test_a_plan_that_has_them_is_followed(self) -> None:
        plan = planned()
        processes = processes_of(plan, 4)
        for process in processes:
            process.rounds_ns = process.rounds_ns[:7] if process.block == 3 else process.rounds_ns
        again = with_rounds_of(plan, processes)
        assert [block.rounds for block in again.blocks] == [10, 10, 10, 7, None, None]
        assert [rounds_of(again, block, processes) for block in again.blocks[:4]] == [10, 10, 10, 7]

    def test_where_processes_are_shared_steady_rounds_are_few(self) -> None:
        plan, processes = planned(until_decided=False), processes_of(planned(), 1)
        own, shared = plan.blocks[1], msgspec.structs.replace(plan.blocks[1], processes_of=0)
        assert rounds_of(plan, shared, processes) == 10
        for process in processes:  # a tenth as noisy
            process.rounds_ns = (np.array(process.rounds_ns) ** 0.1).tolist()
        assert rounds_of(plan, shared, processes) == 5
        assert rounds_of(plan, shared, []) == 10, "nothing is known of the first block"
        assert rounds_of(plan, own, processes) == 10
        assert rounds_of(msgspec.structs.replace(plan, until_decided=True), shared, processes) == 10

    def test_another_figure_than_the_time_of_a_call_leaves_them_as_planned(self) -> None:
        plan = msgspec.structs.replace(planned(), to_score=0.8)
        assert rounds_of(plan, plan.blocks[4], processes_of(plan, 4)) == 10


@pytest.mark.slow
@needs_proc
@pytest.mark.usefixtures("example")
def test_a_block_has_the_rounds_that_its_plan_names_and_the_store_says_what_they_took() -> None:
    plan = planned(blocks=2)
    plan = msgspec.structs.replace(
        plan, blocks=tuple(msgspec.structs.replace(block, rounds=11 + block.number) for block in plan.blocks)
    )
    race = run_race(plan)
    assert [len(process.rounds_ns) for process in race.processes] == [11, 11, 12, 12]
    assert all(0 < process.in_rounds_s < process.elapsed_s for process in race.processes)
    # Two are due; where the first one is slow, as on a busy machine, it stays the only one.
    assert {process.dealt for process in race.processes if process.contestant == "example"} <= {1, 2}
    assert [process.dealt for process in race.processes if process.contestant == "example:slow"] == [0, 0]


@pytest.mark.slow
@needs_proc
@pytest.mark.usefixtures("example")
def test_memory_as_found_stays_as_it_was_found() -> None:
    race = run_race(planned(blocks=1, conditions="as-found"))
    assert [process.dealt for process in race.processes] == [0, 0]
    assert all(process.finished for process in race.processes)
