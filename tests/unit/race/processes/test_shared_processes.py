"""A process takes several works, one after the other, where nothing one leaves can be seen in the next."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.processes import lives
from fairlap.meters.memory import INSTALLED, LAYERS
from fairlap.race.planning.plan import Limits, Measuring, Plan
from fairlap.race.planning.plan_drawing import draw_plan, on_cores, with_blocks
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_required import with_required
from fairlap.race.planning.shared_processes import why_fresh
from fairlap.race.processes import turns
from fairlap.race.processes.kept_workers import KeptWorkers
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Fresh, Work
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import NOT_ITS_FIRST, ProcessResult
from fairlap.verdict import RequiredChange
from fairlap.worker.protocol import Drop
from installed_package import install_frameworks
from machine_marks import needs_proc
from serial_framework import BAD_BATCH, LEFT_S
from small_races import run_race
from workers_of_fake import Files, environment

pytestmark = [needs_proc]

BATCHES = (1, 2, 3, 4)
CORES = tuple(sorted(os.sched_getaffinity(0)))


@pytest.fixture
def serial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_frameworks(tmp_path / "installed", monkeypatch, {"serial": "serial_framework:Serial"})
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def drawn(contestants: str = "torch,onnxruntime", batches: Sequence[int] = BATCHES, **options: Any) -> Plan:
    usual: dict[str, Any] = {
        "blocks": 3,
        "conditions": "controlled",
        "threads": 1,
        "available_cores": CORES,
        "seed": 1,
        "fresh": "first",
    }
    works = options.pop("works", tuple(Work("mlp", batch) for batch in batches))
    return draw_plan(Contestants(contestants), works, **{**usual, **options})


def raced(contestants: str, **options: Any) -> list[ProcessResult]:
    options = {"fresh": "never", "blocks": 1, "measuring": Measuring(seconds=0.02, rounds=2), **options}
    return run_race(drawn(contestants, **options)).processes


def pid_of(process: ProcessResult) -> str:
    return process.in_force["pid"]


def works_by_process(plan: Plan) -> list[list[int]]:
    found = defaultdict(list)
    for block in plan.blocks:
        found[block.number if block.processes_of is None else block.processes_of].append(block.work)
    return list(found.values())


def test_from_the_second_block_on_processes_take_all_works_in_an_order_drawn_for_each_block() -> None:
    orders = works_by_process(drawn(blocks=9))
    assert [len(each) for each in orders] == [1] * 4 + [4] * 8
    assert all(sorted(each) == [0, 1, 2, 3] for each in orders[4:])
    assert len({tuple(each) for each in orders[4:]}) > 4


def test_blocks_of_the_same_processes_share_what_was_drawn_for_a_process_and_not_the_order() -> None:
    blocks = drawn(blocks=40, available_cores=(0, 1, 2, 3)).blocks
    by_number = {block.number: block for block in blocks}
    for block in blocks:
        first = by_number[block.number if block.processes_of is None else block.processes_of]
        of_process = (block.hash_seed, block.padding_bytes, block.cores, block.data_seed)
        assert of_process == (first.hash_seed, first.padding_bytes, first.cores, first.data_seed)
    assert {block.order for block in blocks} == {(0, 1), (1, 0)}


def test_every_draws_what_was_drawn_before_works_shared_processes() -> None:
    assert (
        drawn(fresh="every").blocks
        == draw_plan(
            Contestants("torch,onnxruntime"),
            tuple(Work("mlp", batch) for batch in BATCHES),
            blocks=3,
            conditions="controlled",
            threads=1,
            available_cores=CORES,
            seed=1,
        ).blocks
    )
    assert {len(each) for each in works_by_process(drawn(fresh="every"))} == {1}


def test_never_shares_from_the_first_block_on() -> None:
    assert [len(each) for each in works_by_process(drawn(fresh="never"))] == [4, 4, 4]


def test_only_works_that_ask_for_the_same_share_a_process_and_those_follow_each_other() -> None:
    works = (*(Work(model, 1, mode) for model in ("mlp", "gemm") for mode in ("infer", "grad")), Work("mlp", 2))
    plan = drawn(works=works, fresh="never", blocks=20)
    for order in works_by_process(plan):
        assert len({works[each].mode for each in order}) == 1
        assert len(order) == (3 if works[order[0]].mode == "infer" else 2)
    assert [block.number for block in plan.blocks] == list(range(100))
    for block in plan.blocks:
        assert block.processes_of is None or plan.blocks[block.number - 1].work in [
            each for each in range(5) if works[each].mode == works[block.work].mode
        ]


@pytest.mark.parametrize(
    ("contestants", "options"),
    [
        ("torch,jax", {}),  # not measured
        ("torch,torch:compile", {}),
        ("torch,onnxruntime:sandbox=on", {}),
        ("torch,torch:over=http", {}),
        ("torch,./program", {}),
        ("torch", {}),
        ("torch,onnxruntime", {"batches": (1,)}),
        ("torch,onnxruntime", {"sandbox": True}),
        ("torch,onnxruntime", {"limits": Limits(memory_bytes=10**9)}),
        ("torch,onnxruntime", {"device": "cuda:0"}),
        ("torch,onnxruntime", {"data": "synthetic"}),
        ("torch,onnxruntime", {"conditions": "as-found"}),
        ("torch,onnxruntime", {"measuring": Measuring(rounds=1)}),
        ("torch,onnxruntime", {"works": (Work("gemm", 1), Work("gemm", 1, "grad"))}),
    ],
)
def test_where_one_work_may_change_the_next_each_has_its_own_processes(
    contestants: str, options: dict[str, Any]
) -> None:
    plan = drawn(contestants, **options)
    assert why_fresh(plan)
    assert {len(each) for each in works_by_process(plan)} == {1}


def test_training_has_processes_of_its_own() -> None:
    request = RaceRequest(
        models=("mlp",),
        contestants=Contestants("torch,onnxruntime"),
        batch=(1, 2),
        mode="train",
        blocks=2,
        fresh="first",
    )
    assert why_fresh(plan_of(request, available_cores=CORES))


@pytest.mark.parametrize("fresh", ["first", "never"])
def test_sharing_is_refused_where_no_process_can_take_several_works(fresh: Fresh) -> None:
    request = RaceRequest(models=("mlp",), contestants=Contestants("torch,jax"), batch=(1, 2), fresh=fresh)
    with pytest.raises(InvalidRequest, match=f"--fresh {fresh}"):
        plan_of(request, available_cores=CORES)
    assert not any(
        block.processes_of
        for block in plan_of(msgspec.structs.replace(request, fresh="every"), available_cores=CORES).blocks
    )
    shared = plan_of(
        msgspec.structs.replace(request, contestants=Contestants("torch,onnxruntime")), available_cores=CORES
    )
    assert not why_fresh(shared)


def test_requirements_on_other_quantities_have_processes_of_their_own() -> None:
    plan = with_required(drawn(), [RequiredChange("memory_peak<=+2%", "memory_peak", "<=", 0.02)])
    assert {len(each) for each in works_by_process(plan)} == {1}
    assert with_required(drawn(), []) == drawn()


def test_a_plan_that_shares_is_saved_moved_to_other_cores_and_made_longer(tmp_path: Path) -> None:
    plan = drawn(available_cores=(0, 1, 2, 3))
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    moved = on_cores(plan, (4, 5, 6))
    by_number = {block.number: block for block in moved.blocks}
    assert all(
        block.cores == by_number[block.processes_of].cores for block in moved.blocks if block.processes_of is not None
    )
    assert [len(each) for each in works_by_process(with_blocks(plan, 5))] == [1] * 4 + [4] * 4


@pytest.mark.slow
@pytest.mark.usefixtures("serial")
def test_a_process_takes_its_works_in_turn_and_only_the_first_has_figures_of_a_whole_process() -> None:
    plan = drawn("serial,serial:wrong", batches=(1, 2), blocks=2, measuring=Measuring(seconds=0.02, rounds=2))
    race = run_race(plan)
    assert {process.outcome for process in race.processes} == {"finished"}
    fresh, shared = race.processes[:4], race.processes[4:]
    assert len({pid_of(process) for process in fresh}) == 4
    assert len({pid_of(process) for process in shared}) == 2
    assert [process.works_before for process in race.processes] == [0] * 6 + [1] * 2
    assert [process.in_force["forgotten"] for process in shared] == ["0", "0", "1", "1"]
    assert all(len(process.rounds_ns) == 2 for process in race.processes)
    assert not any(lives(int(pid_of(process))) for process in race.processes)
    for process in race.processes:
        assert ("peak" in process.memory.bytes) == (not process.works_before)
        assert ("interpreter" in process.phases_s) == (not process.works_before)
        assert "first_call" in process.phases_s
    assert set(shared[-1].memory.bytes) == {INSTALLED}
    assert shared[-1].memory.absent == {layer: NOT_ITS_FIRST for layer in LAYERS if layer != INSTALLED}
    assert shared[-1].time_to_first_s() is None
    assert shared[-1].compile_s() is None
    rows = results_of(Run(plan, race.processes, {}, race.shares()), "run").rows
    assert {row.works_in_process for row in rows} == {2}
    assert all(row.time_to_first_inference_s is not None for row in rows)
    assert all(row.peak_memory_bytes is not None for row in rows)


@pytest.mark.slow
@pytest.mark.usefixtures("serial")
def test_what_a_work_leaves_is_there_for_the_next_one_so_such_a_framework_must_not_share() -> None:
    """The known answer of the experiment in tests/trust: LEFT_S a call for every work before."""
    processes = [each for each in raced("serial:leaves,serial", batches=(1, 2, 4)) if each.contestant != "serial"]
    for process in processes:
        assert process.works_before * LEFT_S <= process.headline_ns / 1e9 < (process.works_before + 0.9) * LEFT_S
    assert [process.works_before for process in processes] == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.usefixtures("serial")
@pytest.mark.parametrize(("variant", "outcome"), [("crash", "crash"), ("wrong", "disqualified")])
def test_a_work_that_goes_wrong_ends_alone_and_the_others_get_a_new_process(variant: str, outcome: str) -> None:
    processes = raced(f"serial,serial:{variant}")
    [bad] = [process for process in processes if process.outcome != "finished"]
    assert (bad.contestant, bad.outcome) == (f"serial:{variant}", outcome)
    assert bad.works_before == 0  # it was tried again in a process of its own
    work = next(work for work in drawn("serial").works if work.id == bad.work_id)
    assert work.batch == BAD_BATCH
    after = [process for process in processes if process.block > bad.block]
    before = [process for process in processes if process.block < bad.block]
    assert not {pid_of(process) for process in after} & {pid_of(process) for process in before}
    assert len(after) + len(before) == 6
    assert len({pid_of(process) for process in after}) == (2 if after else 0)


@pytest.mark.slow
@pytest.mark.usefixtures("serial")
def test_what_fails_only_in_a_process_that_did_other_works_finishes_in_a_new_one() -> None:
    processes = raced("serial,serial:stale", batches=(1, 2))
    assert {process.outcome for process in processes} == {"finished"}
    assert [process.works_before for process in processes] == [0] * 4


@pytest.mark.slow
@pytest.mark.usefixtures("serial")
def test_without_room_for_what_waits_a_block_gets_new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def available_bytes() -> int:
        asked.append(1)
        return 0 if len(asked) == 4 else 2**40  # at the first process of the second work

    monkeypatch.setattr(turns, "available_memory_bytes", available_bytes)
    monkeypatch.setattr(KeptWorkers, "held_bytes", lambda _workers, _contestant: 0)
    processes = raced("serial,serial:wrong", batches=(1, 2))
    assert {process.outcome for process in processes} == {"finished"}
    assert {process.works_before for process in processes} == {0}
    assert not any(process.in_turn_because for process in processes)


def test_a_worker_that_dropped_its_contestant_prepares_another_and_answers_as_a_new_one(tmp_path: Path) -> None:
    files = Files(tmp_path).write()
    answers = []
    with WorkerProcess(python_worker(), environment=environment()) as worker:
        for name in ("first", "second"):
            worker.phases_s = {}
            worker.prepare(files.request(), within_s=60)
            worker.answer("inputs", tmp_path / name, within_s=60)
            assert "first_call" in worker.phases_s
            answers.append((tmp_path / name).read_bytes())
            worker.measure(samples=10, warmup=1, calls_per_sample=1, within_s=60)
            assert "peak" in worker.ask(Drop(), within_s=60).memory.bytes
        worker.prepare(files.request(), within_s=60)
        assert "peak" in worker.quit().memory.bytes
    assert answers[0] == answers[1]
