"""What the faster of two runs costs: one sentence in gate and diff where both halves are shown, and none elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import invoke
from fairlap.history.trades_between_runs import trades_between
from fairlap.meters.memory import Memory
from fairlap.race.run import Run
from fairlap.store.runs.run_file import save_run
from saved_runs import saved_run

MIB = 1 << 20


def run_of(time_ns: float, peak_mib: float, *, seed: int = 0, name: str = "torch", blocks: int = 12) -> Run:
    run = saved_run({name: time_ns}, seed=seed, blocks=blocks, spread=0.0)
    for process in run.processes:
        process.memory = Memory({"peak": int(peak_mib * MIB)})
    return run


BEFORE = run_of(1.2e6, 100)


def test_the_trade_between_two_runs_is_one_sentence_in_gate_and_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_run(Path("before.json"), BEFORE)
    save_run(Path("after.json"), run_of(1.0e6, 125, seed=1))
    found = {}
    for command in ("gate", "diff"):
        done = invoke(command, "before.json", "after.json", "--json")
        assert done.exit_code == 0
        [found[command]] = json.loads(done.stdout)["trades"]
        assert f"trade: {found[command]}" in invoke(command, "before.json", "after.json").output
    assert found["gate"] == found["diff"]
    assert "torch after is 20 % faster than torch before for 25 % more peak memory" in found["gate"]


def test_slower_for_less_memory_is_the_trade_of_the_run_before() -> None:
    [found] = trades_between(run_of(1.0e6, 125), run_of(1.2e6, 100, seed=1))
    assert found.endswith("torch before is 20 % faster than torch after for 25 % more peak memory")


def test_versions_are_named_as_the_runs_name_them() -> None:
    [found] = trades_between(run_of(1.2e6, 100, name="jax==0.4.30"), run_of(1.0e6, 125, seed=1, name="jax==0.5.0"))
    assert found.endswith("jax==0.5.0 is 20 % faster than jax==0.4.30 for 25 % more peak memory")


@pytest.mark.parametrize(
    "after",
    [
        run_of(1.0e6, 100, seed=1),  # equal memory
        run_of(1.0e6, 100.9, seed=1),  # within what runs that did not take turns may differ by
        run_of(1.2e6, 125, seed=1),  # equal times
        run_of(1.0e6, 80, seed=1),  # both are better
    ],
)
def test_nothing_is_traded_between_runs_where_one_half_is_not_shown(after: Run) -> None:
    assert trades_between(BEFORE, after) == []


def test_three_processes_before_and_after_are_too_few_to_show_either_half() -> None:
    assert trades_between(run_of(1.2e6, 100, blocks=3), run_of(1.0e6, 125, seed=1, blocks=3)) == []


def test_a_required_quantity_is_the_only_price_that_is_named() -> None:
    after = run_of(1.0e6, 125, seed=1)
    for run, faults in ((BEFORE, 40.0), (after, 80.0)):
        for process in run.processes:
            process.per_call = {"page_faults": faults}
    [every], [named] = trades_between(BEFORE, after), trades_between(BEFORE, after, {"memory_peak"})
    assert ("page faults" in every, "page faults" in named) == (True, False)
    assert trades_between(BEFORE, after, {"energy_per_item"}) == []
