"""A race ends between rounds, by the width of its intervals or by the clock, and never by who leads."""

from __future__ import annotations

import json
import math
import random
from itertools import count

import msgspec
import pytest
from click.testing import CliRunner
from fairlap.cli.commands.compare import command as compare
from fairlap.race import stopping
from fairlap.race.planning.plan import Plan
from fairlap.race.stopping import Ending
from fairlap.request.work import Conditions, Work
from fairlap.scenarios.process_result import ProcessResult, Timing
from small_races import small_plan

WORKS = (Work("mlp", 1), Work("gemm", 1))


def plan(
    works: int = 1, conditions: Conditions = "controlled", blocks: int = 40, *, until_decided: bool = False
) -> Plan:
    return small_plan("a,b", *WORKS[:works], blocks=blocks, conditions=conditions, until_decided=until_decided)


def processes_around(planned: Plan, spread: float, faster: str = "a") -> list[list[ProcessResult]]:
    """Make what every block leaves behind, with the same figures whichever contestant is the faster."""
    rng = random.Random(2)
    found = []
    for block in planned.blocks:
        low, high = sorted(1e6 * rng.lognormvariate(0, spread) for _ in "ab")
        processes = []
        for name in "ab":
            ns = low if name == faster else high
            process = ProcessResult(block.number, 0, name, planned.works[block.work].id, block.conditions)
            process.timings = {"wall_ns": Timing(ns, ns, ns, 99, 1, 0, "flat", "tsc", 10.0)}
            processes.append(process)
        found.append(processes)
    return found


def ended_after(ending: Ending, planned: Plan, processes: list[list[ProcessResult]]) -> tuple[int, str]:
    for number in range(1, len(planned.blocks) + 1):
        so_far = [process for block in processes[:number] for process in block]
        if reason := ending.reason(planned.blocks[:number], so_far):
            return number, reason
    return len(planned.blocks), ""


def test_a_quiet_race_ends_at_the_minimum() -> None:
    planned = plan(conditions="as-found")
    number, reason = ended_after(Ending(planned, target=0.02), planned, processes_around(planned, 0.002))
    assert number == 12
    assert "every interval" in reason


def test_a_noisy_race_goes_on_for_longer() -> None:
    planned = plan(conditions="as-found")
    number, reason = ended_after(Ending(planned, target=0.02), planned, processes_around(planned, 0.05))
    assert number > 20
    assert reason


def test_who_leads_does_not_change_when_it_ends() -> None:
    planned = plan(conditions="as-found")
    ends = {ended_after(Ending(planned, target=0.02), planned, processes_around(planned, 0.03, name)) for name in "ab"}
    assert len(ends) == 1


def test_all_works_have_had_as_many_blocks_when_it_ends() -> None:
    planned = plan(works=2)
    number, _ = ended_after(Ending(planned, target=0.02), planned, processes_around(planned, 0.002))
    ran = [block.work for block in planned.blocks[:number] if block.conditions == "controlled"]
    assert ran.count(0) == ran.count(1) == 12


def test_without_a_target_or_a_budget_every_block_runs() -> None:
    planned = plan(blocks=20)
    assert ended_after(Ending(planned), planned, processes_around(planned, 0.0001)) == (len(planned.blocks), "")


def test_a_target_cannot_be_met_while_somebody_cannot_be_compared() -> None:
    planned = plan(conditions="as-found", blocks=20)
    processes = processes_around(planned, 0.001)
    for block in processes:
        block[0].outcome = "crash"
    assert ended_after(Ending(planned, target=0.02), planned, processes)[1] == ""


def test_a_budget_ends_the_race_before_the_block_that_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(conditions="as-found", blocks=30)
    clock = count(0.0, 10.0)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    number, reason = ended_after(Ending(planned, budget_s=75.0), planned, processes_around(planned, 0.01))
    assert number == 7
    assert reason == "another block would not have fitted into 75 s"


def test_what_is_installed_once_takes_nothing_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(conditions="as-found", blocks=30)
    clock = count(0.0, 10.0)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    ending = Ending(planned, budget_s=75.0)
    ending.leave_out(100.0)
    number, _ = ended_after(ending, planned, processes_around(planned, 0.01))
    assert number == 17


@pytest.mark.parametrize(
    ("block_s", "blocks", "why"),
    [
        (5.0, 12, "another block would not have fitted into 60 s"),
        (20.0, 6, "it took 120 s, and its budget was 60 s, which may grow to 150 s for the first 6 blocks"),
        (160.0, 1, "it took 160 s, and its budget was 60 s, which may grow to 150 s for the first 6 blocks"),
        (40.0, 3, "another block would not have fitted into 150 s"),
    ],
)
def test_without_a_budget_a_race_goes_on_while_it_could_claim_nothing(
    monkeypatch: pytest.MonkeyPatch, block_s: float, blocks: int, why: str
) -> None:
    """A minute; or six blocks, if they fit into two and a half."""
    planned = plan(conditions="as-found", blocks=30, until_decided=True)
    clock = count(0.0, block_s)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr(Ending, "_decided", lambda *_: False)
    number, reason = ended_after(Ending(planned), planned, processes_around(planned, 0.01))
    assert (number, reason) == (blocks, why)


def test_blocks_from_before_take_nothing_of_the_budget_of_a_race_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(conditions="as-found", blocks=30)
    now_s = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    ending = Ending(planned, budget_s=35.0)
    now_s = 10.0
    assert ending.reason(planned.blocks[:21], [], kept=20) == ""
    assert ending.budget_left_s() == 25.0
    now_s = 30.0  # three blocks in these thirty seconds: a fourth would end at forty
    assert ending.reason(planned.blocks[:23], [], kept=20) == "another block would not have fitted into 35 s"


@pytest.mark.parametrize(
    ("options", "blocks"),
    [([], 200), (["--target", "1%"], 60), (["--budget=5m"], 200), (["--target=1%", "--blocks=30"], 30)],
)
def test_what_ends_a_race_decides_how_many_blocks_are_drawn(options: list[str], blocks: int) -> None:
    plan = ["mlp", "--on", "torch,jax", "--threads", "1", "--conditions", "as-found", "--dry-run", "--json"]
    done = CliRunner().invoke(compare, [*plan, *options])
    assert len(json.loads(done.stdout)["blocks"]) == blocks


def test_a_budget_that_was_given_ends_turns_and_epochs_of_the_first_round_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    monkeypatch.setattr("fairlap.race.stopping.time.monotonic", lambda: now_s)
    planned = plan(blocks=3, until_decided=True)
    given, by_default, fixed = Ending(planned, budget_s=60.0), Ending(planned), Ending(plan(blocks=3))
    assert not given.ends_first_block()
    now_s = 200.0
    assert (given.ends_first_block(), by_default.ends_first_block(), fixed.ends_first_block()) == (True, False, False)
    given.reason(planned.blocks[:1], processes_around(planned, 0.01)[0])
    assert not given.ends_first_block()


def test_no_request_may_last_longer_than_a_budget_that_was_given() -> None:
    undecided = plan(until_decided=True)
    assert Ending(undecided, budget_s=60.0).longest_request_s == 60.0
    assert Ending(undecided, budget_s=5.0).longest_request_s == stopping.LEAST_OF_A_REQUEST_S
    assert Ending(undecided).longest_request_s == Ending(plan()).longest_request_s == math.inf


@pytest.mark.parametrize("until_decided", [True, False])
def test_a_race_in_which_nothing_can_run_ends_after_its_first_round(until_decided: bool) -> None:
    planned = plan(2, blocks=4, until_decided=until_decided)
    processes = processes_around(planned, 0.1)
    for process in (each for block in processes for each in block):
        process.outcome = "unsupported"
    assert ended_after(Ending(planned), planned, processes)[0] == 2
    processes[0][0].outcome = "crash"
    assert ended_after(Ending(planned), planned, processes)[0] > 2


def test_the_plan_has_the_budget_and_the_target_of_its_race_unless_others_are_given() -> None:
    planned = msgspec.structs.replace(plan(until_decided=True), budget_s=8.0)
    assert Ending(planned).longest_s == 8.0
    assert Ending(planned, budget_s=3.0).longest_s == 3.0
    wide = msgspec.structs.replace(plan(), target=0.02)
    assert ended_after(Ending(wide), wide, processes_around(wide, 0.002))[0] == 12


def test_a_decided_race_that_gets_more_to_do_is_ended_by_its_budget_alone() -> None:
    planned = plan(until_decided=True)
    processes = processes_around(planned, 0.3)
    number, reason = ended_after(Ending(planned, budget_s=1e6), planned, processes)
    assert stopping.ended_by_rule(reason) == stopping.DECIDED
    assert number < len(planned.blocks)
    going_on = Ending(planned, budget_s=1e6, past_decision=True)
    assert ended_after(going_on, planned, processes) == (len(planned.blocks), "")


def test_why_a_race_ended_is_known_from_what_was_recorded() -> None:
    planned = plan()
    spent = Ending(planned, budget_s=1e-9).reason(planned.blocks[:1], processes_around(planned, 0.02)[0])
    assert stopping.is_out_of_time(spent)
    assert stopping.ended_by_rule(spent) == spent
    assert stopping.ended_by_rule(f"{stopping.DECIDED}; continued after block 7") == stopping.DECIDED
    assert stopping.ended_by_rule("cannot read data.npy: No such file or directory") == ""


@pytest.mark.parametrize("until_decided", [False, True])
@pytest.mark.parametrize(("codes", "after"), [(("E_SERVER", "E_SERVER"), 1), (("E_SERVER", "E_CRASH"), 2)])
def test_a_race_of_servers_ends_with_the_first_block_in_which_none_answers(
    codes: tuple[str, str], after: int, until_decided: bool
) -> None:
    planned = plan(blocks=2 if after == 2 else 12, until_decided=until_decided)
    lost = [
        [
            ProcessResult(block.number, place, name, planned.works[block.work].id, block.conditions, "failed", code)
            for place, (name, code) in enumerate(zip("ab", codes, strict=True))
        ]
        for block in planned.blocks
    ]
    assert ended_after(Ending(planned), planned, lost)[0] == after


def test_a_race_goes_on_while_one_of_its_servers_answers() -> None:
    planned = plan(blocks=3, conditions="as-found")
    found = processes_around(planned, 0.01)
    for block in found:
        block[1].outcome, block[1].code = "failed", "E_SERVER"
    assert ended_after(Ending(planned), planned, found) == (3, "")
