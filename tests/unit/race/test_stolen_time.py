"""A ratio that rests on starved barriers, or on a quota, is not claimed; one under moderate load is."""

from __future__ import annotations

import msgspec
import pytest
from fairlap.meters import device_neighbours, device_slowdown, disturbances
from fairlap.meters.stolen_time import E_BUSY_MACHINE, E_GPU_THROTTLED, E_THROTTLED
from fairlap.race.counted_blocks import work_blocks
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.race.stolen_time import stolen_time
from fairlap.render.report.answer import headline
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.results import Results, results_of
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.store.runs.run_file import run_document

WORK = Work("mlp", 4)


def plan_of(threads: int) -> Plan:
    cores = tuple(range(threads))
    names, works = Contestants("torch,jax"), (WORK,)
    return draw_plan(names, works, blocks=8, conditions="controlled", threads=threads, available_cores=cores, seed=1)


PLAN = plan_of(2)


def processes_with(torch: dict[str, float], jax: dict[str, float]) -> list[ProcessResult]:
    found = []
    for block in range(8):
        for name, ns, machine in (("torch", 12e6, torch), ("jax", 1e6, jax)):
            jittered = ns * (1 + 0.001 * ((block * 7 + len(name)) % 5))
            figure = Timing(jittered, 2 * jittered, 3 * jittered, 100, 1, 0, "flat", "tsc", 10.0)
            made = ProcessResult(block, 0, name, WORK.id, "controlled", timings={"wall_ns": figure})
            made.machine, made.phases_s = dict(machine), {"measured": 1.0}
            found.append(made)
    return found


def waiting(torch: float, jax: float) -> list[ProcessResult]:
    return processes_with({disturbances.WAITED: torch}, {disturbances.WAITED: jax})


def throttled(seconds: float) -> list[ProcessResult]:
    return processes_with({disturbances.THROTTLED: seconds}, {disturbances.THROTTLED: seconds})


def shown(processes: list[ProcessResult], plan: Plan = PLAN) -> Results:
    return results_of(Run(plan, processes, {}, {}))


@pytest.mark.parametrize(
    ("processes", "code"), [(waiting(1.3, 1.0), E_BUSY_MACHINE), (throttled(1.2), E_THROTTLED)], ids=["busy", "quota"]
)
def test_no_ratio_is_claimed_where_others_had_the_machine(processes: list[ProcessResult], code: str) -> None:
    results = shown(processes)
    [work_result] = results.work_results
    assert work_result.table is None
    assert work_result.comparisons == ()
    assert all(row.ratio is None and row.verdict is None and row.place is None for row in work_result.rows)
    assert all(code in row.absent["ratio"] for row in work_result.rows)
    [written] = run_document(results.run, results).work_results
    assert (written.no_verdict_code, written.comparisons) == (code, [])
    assert headline(work_result) == "No verdict"
    text = text_of(results)
    assert code in text
    assert "×" not in text
    assert all("W_BUSY_MACHINE" in {warning.code for warning in row.warnings} for row in work_result.rows)


def test_moderate_load_and_steal_get_a_verdict_and_the_row_says_what_was_taken() -> None:
    taken = {disturbances.WAITED: 0.2, disturbances.STEAL: 0.15}
    [work_result] = shown(processes_with(taken, taken)).work_results
    assert [each.verdict.value for each in work_result.comparisons] == ["slower"]
    assert work_result.busy is not None
    assert work_result.busy.code == "W_BUSY_MACHINE"


def test_a_quiet_machine_has_no_warning() -> None:
    [work_result] = shown(waiting(0.02, 0.01)).work_results
    assert work_result.busy is None
    assert work_result.comparisons


def test_a_contestant_that_waits_for_itself_is_no_busy_machine() -> None:
    stolen = stolen_time(waiting(2.0, 0.01))
    assert stolen.refusal(threads=2) == ("", "")
    assert not stolen.is_worth_saying


def test_who_was_robbed_does_not_matter_to_the_refusal() -> None:
    codes = {stolen_time(each).refusal(threads=2)[1] for each in (waiting(1.3, 0.9), waiting(0.9, 1.3))}
    assert codes == {E_BUSY_MACHINE}


def test_the_advice_names_threads_that_can_be_chosen() -> None:
    stolen = stolen_time(waiting(1.3, 1.0))
    assert "--threads" in stolen.refusal(threads=2)[0]
    assert "--threads" not in stolen.refusal(threads=2, whose="callables")[0]
    assert "--threads" not in stolen.refusal(threads=1, of_slowest=True)[0]  # there are no fewer


def test_programs_are_told_of_the_one_core_that_makes_their_ratio_claimable() -> None:
    """They choose their threads themselves, and a race of one thread keeps them on one core."""
    stolen = stolen_time(waiting(1.3, 1.0))
    text, code = stolen.refusal(threads=2, whose="programs")
    assert code == E_BUSY_MACHINE
    assert "--threads 1" in text
    assert "fewer" not in text
    assert stolen.refusal(threads=1, whose="programs") == ("", "")
    commands = draw_plan(
        Contestants("command:run=true"),
        (WORK,),
        blocks=2,
        conditions="controlled",
        threads=1,
        available_cores=(0, 1),
        seed=1,
    )
    assert {len(block.cores) for block in commands.blocks} == {1}


@pytest.mark.parametrize(("taken", "claimed"), [(1.1, False), (0.05, True)])
def test_threads_and_programs_that_end_with_a_call_are_judged_by_what_others_took(taken: float, claimed: bool) -> None:
    """Their waiting is not seen, nor is the one thread that calls all that computes."""
    of_threads = {disturbances.WAITED: 0.0, disturbances.TAKEN: taken}
    processes = processes_with(of_threads, {disturbances.WAITED: 0.03})
    for process in processes:
        process.per_call = {"thread_cpu_ns": 1e6, "process_cpu_ns": 1e6}
    [work_result] = shown(processes).work_results
    assert bool(work_result.comparisons) is claimed
    assert (work_result.busy is None) is claimed


def test_a_single_thread_meets_no_other_so_its_ratio_is_claimed() -> None:
    [work_result] = shown(waiting(1.0, 1.0), plan_of(1)).work_results
    assert work_result.comparisons
    assert work_result.busy is not None


def test_an_instant_of_throttling_or_one_quiet_block_leaves_the_verdict() -> None:
    assert stolen_time(throttled(0.001)).throttled_blocks == 0
    processes = throttled(1.2)
    for each in processes[:2]:
        each.machine = {disturbances.THROTTLED: 0.0}
    assert stolen_time(processes).refusal(threads=2) == ("", "")


def test_a_race_on_an_accelerator_is_not_refused_for_its_processor() -> None:
    plan = msgspec.structs.replace(PLAN, device="cuda")
    assert work_blocks(plan, waiting(1.3, 1.0), "controlled")[0].table is not None


def test_a_self_test_judges_on_any_machine() -> None:
    assert work_blocks(PLAN, waiting(1.3, 1.0), "controlled", on_any_machine=True)[0].table is not None


@pytest.mark.parametrize(("of_all_threads", "claimed"), [(1.1, True), (1.9, False)])
def test_contestants_that_compute_on_one_thread_are_compared_on_a_busy_machine(
    of_all_threads: float, claimed: bool
) -> None:
    processes = waiting(1.0, 1.0)
    for process in processes:
        process.per_call = {"thread_cpu_ns": 1e6, "process_cpu_ns": 1e6}
    processes[0].per_call["process_cpu_ns"] *= of_all_threads
    [work_result] = shown(processes).work_results
    assert bool(work_result.comparisons) is claimed
    assert work_result.busy is not None


@pytest.mark.parametrize(
    ("holding", "computing", "code", "warns"), [(0, 0, "", False), (1, 0, "", True), (2, 1, E_BUSY_MACHINE, True)]
)
def test_processes_of_others_on_the_gpu_are_said_and_none_may_compute(
    holding: int, computing: int, code: str, warns: bool
) -> None:
    read = {device_neighbours.HOLDING: float(holding), device_neighbours.COMPUTING: float(computing)}
    plan = msgspec.structs.replace(PLAN, device="cuda:0")
    [work_result] = shown(processes_with(read, read), plan).work_results
    assert (work_result.basis.no_verdict_code, work_result.busy is not None) == (code, warns)
    assert (work_result.comparisons == ()) is bool(code)


@pytest.mark.parametrize(("slowed", "claims"), [((0.0, 0.0), True), ((0.009, 0.0), True), ((0.2, 0.0), False)])
def test_a_gpu_that_heat_or_power_slowed_down_gives_no_verdict(slowed: tuple[float, float], claims: bool) -> None:
    plan = msgspec.structs.replace(PLAN, device="cuda:0")
    first, second = ({device_slowdown.SLOWED: share} for share in slowed)
    [work_result] = shown(processes_with(first, second), plan).work_results
    assert bool(work_result.comparisons) is claims
    assert (work_result.basis.no_verdict_code == E_GPU_THROTTLED) is not claims
    assert (work_result.busy is None) is claims


def test_waiting_threads_refuse_no_race_on_a_gpu() -> None:
    plan = msgspec.structs.replace(PLAN, device="cuda:0")
    [work_result] = shown(waiting(1.3, 1.0), plan).work_results
    assert work_result.comparisons
