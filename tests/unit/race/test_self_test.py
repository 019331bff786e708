"""The referee on trial: pairs that differ in name only, counts that add up, slowdowns that are what they say."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from fairlap.cli.commands.self_test import command as self_test_command
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.race import self_test
from fairlap.race.planning.plan import Plan
from fairlap.race.self_test import Trial, share_text, tally, verdicts_of
from fairlap.request.names import contestant_named
from fairlap.request.race_request import MOST_EPOCHS_BY_DEFAULT
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.worker.slowdown import slowdown_in, slowed

TRIAL = Trial(contestant_named("torch:compile"), Work("mlp", 1), blocks=12, threads=1, cores=(0, 1))


class FakeRace:
    """Gives every contestant figures around a median of its own."""

    medians_ns = (1e6, 1e6)
    outcome = "finished"
    plans: list[Plan]

    def __init__(self, plan: Plan, ending: object = None) -> None:
        self.plan, self.processes = plan, list[ProcessResult]()
        type(self).plans.append(plan)

    def run(self) -> None:
        rng = np.random.default_rng(self.plan.seed)
        for block in self.plan.blocks:
            for place in block.order:
                ns = self.medians_ns[place] * float(np.exp(rng.normal(0, 0.003)))
                process = ProcessResult(
                    block.number, 0, self.plan.contestants[place].text, TRIAL.work.id, block.conditions
                )
                process.outcome, process.message = self.outcome, "told so"  # type: ignore[assignment]
                process.timings = {"wall_ns": Timing(ns, ns, ns, 99, 1, 0, "flat", "tsc", 10.0)}
                self.processes.append(process)


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch) -> Callable[..., type[FakeRace]]:
    def install(medians_ns: tuple[float, float] = (1e6, 1e6), outcome: str = "finished") -> type[FakeRace]:
        made = type("Made", (FakeRace,), {"medians_ns": medians_ns, "outcome": outcome, "plans": []})
        monkeypatch.setattr(self_test, "Race", made)
        return made

    return install


def test_a_device_is_the_one_that_every_run_of_the_trial_races_on(races: Callable[..., type[FakeRace]]) -> None:
    made = races()
    list(verdicts_of(replace(TRIAL, device="cuda:0"), runs=2, seed=1))
    assert [plan.device for plan in made.plans] == ["cuda:0", "cuda:0"]


def test_a_trial_to_a_score_trains_in_every_run(races: Callable[..., type[FakeRace]]) -> None:
    made = races()
    list(verdicts_of(replace(TRIAL, to_score=0.9), runs=2, seed=1))
    assert [(plan.to_score, plan.most_epochs) for plan in made.plans] == [(0.9, MOST_EPOCHS_BY_DEFAULT)] * 2


def test_the_pair_differs_in_its_name_only() -> None:
    first, second = TRIAL.pair
    assert (first.text, second.text) == ("torch:compile", "torch:compile (again)")
    assert (first.framework, first.variant, first.options) == (second.framework, second.variant, second.options)


def test_every_run_has_orders_and_processes_of_its_own_and_no_processes_beside(
    races: Callable[..., type[FakeRace]],
) -> None:
    made = races()
    assert len(list(verdicts_of(TRIAL, 3, 7))) == 3
    assert len({plan.seed for plan in made.plans}) == 3
    assert all(len(plan.blocks) == 12 for plan in made.plans)
    assert {block.conditions for plan in made.plans for block in plan.blocks} == {"controlled"}


def test_identical_contestants_are_called_different_in_few_runs(races: Callable[..., type[FakeRace]]) -> None:
    races()
    counted = tally(list(verdicts_of(TRIAL, 40, 1)), 1.0)
    assert counted.claims <= 6
    assert counted.holds >= 34


def test_a_slowdown_is_found_and_told_from_the_first_ones_side(races: Callable[..., type[FakeRace]]) -> None:
    races((1e6, 1.02e6))
    found = list(verdicts_of(TRIAL, 3, 2))
    assert {each.a for each in found} == {"torch:compile"}
    counted = tally(found, 1 / 1.02)
    assert (counted.faster, counted.slower, counted.holds) == (3, 0, 3)


def test_a_run_without_a_verdict_says_why(races: Callable[..., type[FakeRace]]) -> None:
    races(outcome="crash")
    with pytest.raises(self_test.NoVerdict, match="crash: told so"):
        list(verdicts_of(TRIAL, 1, 3))


def test_rates_carry_their_exact_interval() -> None:
    # R: binom.test(3, 40)$conf.int: 0.01572 0.20386.
    assert share_text(3, 40) == "3 of 40 runs, 7.5 % [1.6, 20.4]"


def run_self_test(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(self_test_command, ["mlp", "--on", "torch", "--threads", "1", "--seed", "5", *arguments])
    return done.exit_code, done.output


def test_the_command_says_whether_the_promise_was_kept(races: Callable[..., type[FakeRace]], tmp_path: Path) -> None:
    races()
    file = tmp_path / "aa.json"
    status, _ = run_self_test("--runs", "4", "-o", str(file))
    assert status == 0
    document = json.loads(file.read_bytes())
    assert (document["passed"], len(document["verdicts"])) == (True, 4)


def test_runs_of_too_few_blocks_to_claim_anything_prove_nothing(
    races: Callable[..., type[FakeRace]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = races()

    def run(self: FakeRace) -> None:
        self.plan = msgspec.structs.replace(self.plan, blocks=self.plan.blocks[:4])
        FakeRace.run(self)

    monkeypatch.setattr(made, "run", run)
    status, printed = run_self_test("--runs", "3", "--budget", "1s")
    assert status == 1
    assert "3 of 3 runs" in printed
    assert "passed" not in printed


def test_a_model_without_labelled_data_cannot_be_trained_to_a_score(races: Callable[..., type[FakeRace]]) -> None:
    made = races()
    done = CliRunner().invoke(self_test_command, ["mlp", "--on", "torch", "--to-score", "90%"])
    assert getattr(done.exception, "code", "") == "E_TO_SCORE"
    assert made.plans == []


def test_a_referee_that_claims_too_much_fails(races: Callable[..., type[FakeRace]]) -> None:
    races((1e6, 1.1e6))
    status, output = run_self_test("--runs", "4")
    assert status == 1
    assert "4 of 4 runs" in output


def test_the_command_counts_what_was_found_of_a_slowdown(races: Callable[..., type[FakeRace]]) -> None:
    made = races((1e6, 1.02e6))
    status, output = run_self_test("--runs", "3", "--slowdown", "2%")
    assert status == 0
    assert "3 of 3 runs" in output
    assert "0 of 3 runs" in output
    assert made.plans[0].contestants[1].text == "torch (slower by 2%)"
    assert made.plans[0].contestants[1].options == (("slowdown", "2%"),)


def test_ctrl_c_keeps_the_runs_that_ended(
    races: Callable[..., type[FakeRace]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = races()

    def run(self: FakeRace) -> None:
        if len(made.plans) == 3:
            raise KeyboardInterrupt
        FakeRace.run(self)

    monkeypatch.setattr(made, "run", run)
    status, output = run_self_test("--runs", "9")
    assert status == 130
    assert "2 of 9 runs" in output
    assert "of 2 runs" in output


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), ("0.05", 0.05), ("0", 0.0), ("150%", 1.5)])
def test_a_slowdown_is_a_share_and_leaves_the_frameworks_options_alone(text: str, share: float) -> None:
    options = {"slowdown": text, "mode": "max-autotune"}
    assert slowdown_in(options) == pytest.approx(share)
    assert options == {"mode": "max-autotune"}


@pytest.mark.parametrize("text", ["much", "-1%", "nan", "2 percent", "1e9"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="not a share"):
        slowdown_in({"slowdown": text})


def contestant(**more: Any) -> Contestant:
    def bind(inputs: Any) -> Callable[[], Any]:
        def call() -> str:
            time.sleep(0.002)
            return "result"

        return call

    return Contestant(bind, None, lambda result: {}, dict, {"threads": "1"}, **more)


def test_a_slowed_call_takes_its_share_longer_gives_the_same_and_says_so() -> None:
    made = slowed(contestant(), 4.0)
    began_s = time.perf_counter()
    assert made.bind({})() == "result"
    assert time.perf_counter() - began_s >= 5 * 0.002
    assert made.in_force["slowdown"] == "400 % added to every call on purpose"


def test_a_slowed_asynchronous_call_is_waited_for_first() -> None:
    waited = list[Any]()
    lazy = Contestant(lambda inputs: lambda: "result", waited.append, lambda result: {}, dict, {})
    made = slowed(lazy, 0.5)
    made.bind({})()
    assert waited == ["result"]
    assert made.done is None


def test_no_slowdown_leaves_the_contestant_as_it_is() -> None:
    untouched = contestant()
    assert slowed(untouched, 0.0) is untouched


def test_what_runs_on_a_device_cannot_be_slowed() -> None:
    with pytest.raises(Unsupported, match="cannot slow down"):
        slowed(contestant(), 0.02, "cuda:0")
