"""Requirements on memory, compile time and other quantities: one interval in gate, exit status, JSON and comment."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from command_line import invoke, refusal
from fairlap.cli.commands.stored_runs.diff import command as diff
from fairlap.cli.commands.stored_runs.gate import command as gate
from fairlap.meters.energy import EnergyOfBlock, EnergyRead
from fairlap.meters.memory import Memory
from fairlap.race.planning.plan_required import with_required
from fairlap.race.run import Run
from fairlap.render.plan_command import command_of
from fairlap.results.decision.required_decided import are_required_decided
from fairlap.results.results import results_of
from fairlap.store.runs.run_file import save_run
from fairlap.verdict import Gate, required_changes_of
from saved_runs import saved_run

PASSED, EXCEEDED, INCONCLUSIVE, NOT_COMPARABLE = 0, 1, 2, 3
MIB = 1 << 20


def run_with(
    *,
    peaks: dict[str, Sequence[int]],
    times_ns: dict[str, float] | None = None,
    blocks: int = 12,
    seed: int = 0,
    **per_call: dict[str, float],
) -> Run:
    """Each contestant holds these bytes in its blocks, in turn; ``per_call`` has further counters of a call."""
    run = saved_run(times_ns or dict.fromkeys(peaks, 1e6), blocks=blocks, seed=seed)
    for process in run.processes:
        own = peaks[process.contestant]
        process.memory = Memory({"peak": own[process.block % len(own)]})
        process.per_call = {name: values[process.contestant] for name, values in per_call.items()}
    return run


EQUAL = run_with(peaks={"base": [100 * MIB], "change": [100 * MIB]})
LARGER = run_with(peaks={"base": [100 * MIB], "change": [120 * MIB]}, times_ns={"base": 1.05e6, "change": 1e6})


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def gated(run: Run, *options: str) -> Result:
    save_run(Path("run.json"), run)
    return CliRunner().invoke(gate, ["run.json", "--baseline", "base", *options])


def found_in(done: Result) -> dict[str, Any]:
    [_, *required] = json.loads(done.stdout)["findings"]
    [found] = required
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("run", "requirement", "options", "status", "word"),
    [
        (EQUAL, "memory_peak<=+2%", (), PASSED, "passed"),
        (EQUAL, "memory_peak<=+0%", ("--strict",), PASSED, "passed"),
        (LARGER, "memory_peak<=+2%", (), EXCEEDED, "exceeded"),
        (LARGER, "memory_peak<=+19.9%", (), EXCEEDED, "exceeded"),
        (LARGER, "memory_peak<=+20%", ("--strict",), PASSED, "passed"),
        (LARGER, "memory_peak<=+30%", (), PASSED, "passed"),
        (LARGER, "throughput>=+2%", (), PASSED, "passed"),
        (LARGER, "throughput>=+8%", (), EXCEEDED, "exceeded"),
        (run_with(peaks={"base": [100 * MIB], "change": [90 * MIB, 115 * MIB]}), "memory_peak<=+2%", (), PASSED,
         "inconclusive"),
        (run_with(peaks={"base": [100 * MIB], "change": [90 * MIB, 115 * MIB]}), "memory_peak<=+2%", ("--strict",),
         INCONCLUSIVE, "inconclusive"),
        (run_with(peaks={"base": [100 * MIB], "change": [200 * MIB]}, blocks=5), "memory_peak<=+2%", ("--strict",),
         INCONCLUSIVE, "inconclusive"),
    ],
)  # fmt: skip
def test_a_requirement_fails_passes_or_is_inconclusive(
    run: Run, requirement: str, options: tuple[str, ...], status: int, word: str
) -> None:
    done = gated(run, "--require", requirement, "--max-slowdown", "10%", "--json", *options)
    found = found_in(done)
    assert (done.exit_code, found["status"], found["required"]) == (status, word, requirement)


@pytest.mark.slow_but("required0-8-True", "required1-6-False")
@pytest.mark.parametrize(("blocks", "until_decided"), [(6, False), (8, True), (16, False), (16, True)])
@pytest.mark.parametrize("required", [("memory_peak",), ("memory_peak", "page_faults", "throughput")])
def test_gate_row_and_json_of_the_run_have_one_interval(
    blocks: int, until_decided: bool, required: tuple[str, ...]
) -> None:
    rng = random.Random(blocks)
    peaks = [rng.randrange(100 * MIB, 104 * MIB, 4096) for _ in range(32)]
    run = run_with(
        peaks={"base": peaks[:16], "change": [each + 2 * MIB for each in peaks[16:]]},
        blocks=blocks,
        page_faults={"base": 40.0, "change": 50.0},
    )
    run.plan = msgspec.structs.replace(run.plan, until_decided=until_decided)
    changes = required_changes_of(f"{each}<=+2%" for each in required)
    results = results_of(run, baseline="base", required=changes)
    for bound in (0.0, 0.01, 0.02, 0.05, 0.2):
        options = [word for each in required for word in ("--require", f"{each}<=+{100 * bound:g}%")]
        done = gated(run, *options, "--json", "--strict")
        compared = results.work_results[0].other_comparisons("change", "base")
        for found in json.loads(done.stdout)["findings"][1:]:
            own = compared[found["required"].partition("<")[0]]
            assert (found["ratio"], found["low"]) == (own.ratio, own.interval.low)
            assert found["high"] in (own.interval.high, None)
            high = own.interval.high
            above, below = found["low"] > (1 + bound) * (1 + 1e-12), high <= (1 + bound) * (1 + 1e-12)
            assert found["status"] == ("exceeded" if above else "passed" if below else "inconclusive")


def test_required_quantities_share_one_error_rate_and_leave_the_time_alone() -> None:
    run = run_with(
        peaks={"base": [100 * MIB], "change": [100 * MIB]}, page_faults={"base": 40.0, "change": 40.0}, blocks=7
    )
    alone, both = (
        results_of(run, required=required_changes_of(texts)).work_results[0]
        for texts in (["memory_peak<=+2%"], ["memory_peak<=+2%", "page_faults<=+2%"])
    )
    levels = [each.other_comparisons("change", "base")["memory_peak"].level for each in (alone, both)]
    assert levels == [0.05, 0.025]
    assert both.other_comparisons("change", "base")["throughput"].level == 0.05
    assert alone.comparisons == both.comparisons


def test_calls_without_page_faults_have_a_ratio_and_some_faults_are_shown() -> None:
    none = {"base": 0.0, "change": 0.001}
    done = gated(
        run_with(peaks={"base": [MIB], "change": [MIB]}, page_faults=none), "--require", "page_faults<=+0%", "--json"
    )
    assert (done.exit_code, found_in(done)["ratio"]) == (PASSED, 1.0)
    some = {"base": 0.0, "change": 300.0}
    done = gated(
        run_with(peaks={"base": [MIB], "change": [MIB]}, page_faults=some), "--require", "page_faults<=+10%", "--json"
    )
    assert (done.exit_code, found_in(done)["ratio"]) == (EXCEEDED, pytest.approx(300))


def test_energy_and_compile_time_are_quantities_too() -> None:
    run = run_with(peaks={"base": [MIB], "change": [MIB]})
    for process in run.processes:
        more = 1.0 + (process.contestant == "change")
        process.energy = EnergyOfBlock(1.0, 100, [EnergyRead("one", 2.0, 1.9, 2.1), EnergyRead("two", more, 0.9, 2.1)])
        process.phases_s = {"compile": more, "first_call": 0.1}
    done = gated(run, "--require", "energy_per_item<=+5%", "--json")
    assert (done.exit_code, found_in(done)["ratio"]) == (EXCEEDED, pytest.approx(4 / 3))
    done = gated(run, "--require", "compile_time<=+5%", "--json")
    assert (done.exit_code, found_in(done)["ratio"]) == (EXCEEDED, pytest.approx(2))
    done = gated(run, "--require", "time_to_first_inference<=+120%", "--json")
    assert (done.exit_code, found_in(done)["ratio"]) == (PASSED, pytest.approx(2.1 / 1.1))


def test_a_quantity_that_the_run_lacks_is_not_comparable_and_those_it_has_are_named() -> None:
    done = gated(EQUAL, "--require", "energy_per_item<=+2%", "--json")
    text = found_in(done)["text"]
    assert (done.exit_code, found_in(done)["status"]) == (NOT_COMPARABLE, "not comparable")
    assert "[E_QUANTITY]" in text
    assert "memory_peak" in text
    assert "cpu_time" not in text
    done = gated(EQUAL, "--require", "latency<=+2%", "--json")
    assert (done.exit_code, "--max-slowdown" in found_in(done)["text"]) == (NOT_COMPARABLE, True)


@pytest.mark.parametrize(("given", "meant"), [("memory_peek<=+2%", "memory_peak"), ("cputime<=+2%", "cpu_time")])
def test_a_mistyped_quantity_is_refused_with_the_nearest_one(given: str, meant: str) -> None:
    done = gated(EQUAL, "--require", given)
    assert (done.exit_code, "E_REQUIRE" in done.output, f"did you mean {meant}" in done.output) == (3, True, True)
    assert invoke("diff", "run.json", "run.json", "--require", given).exit_code != 0


def test_a_contestant_that_is_not_ranked_is_not_comparable_by_any_quantity() -> None:
    run = run_with(peaks={"base": [MIB], "change": [MIB]})
    run.processes[1].outcome, run.processes[1].message = "disqualified", "logits differs"
    done = gated(run, "--require", "memory_peak<=+2%", "--json")
    assert (done.exit_code, len(json.loads(done.stdout)["findings"])) == (NOT_COMPARABLE, 1)


def test_the_file_of_the_folder_is_read_without_options() -> None:
    Path("gate.toml").write_text('max_slowdown = "10%"\nrequire = ["memory_peak<=+2%"]\n')
    done = gated(LARGER, "--json")
    assert (done.exit_code, json.loads(done.stdout)["max_slowdown"]) == (EXCEEDED, 0.1)
    done = gated(LARGER, "--require", "memory_peak<=+25%")
    assert done.exit_code == PASSED
    Path("gate.toml").write_text('requir = ["memory_peak<=+2%"]\n')
    done = gated(LARGER)
    assert (done.exit_code, "E_TOML" in done.output, "did you mean require" in done.output) == (3, True, True)


def test_the_trade_is_one_sentence_in_gate_run_and_page() -> None:
    done = gated(LARGER, "--require", "memory_peak<=+30%", "--json")
    [trade] = json.loads(done.stdout)["trades"]
    assert trade.endswith("for 20 % more peak memory")
    save_run(Path("judged.json"), LARGER, results_of(LARGER))
    [work] = msgspec.json.decode(Path("judged.json").read_bytes())["work_results"]
    assert len(work["trades"]) == 1
    assert {"memory_peak", "page_faults", "cpu_time"} <= {each["quantity"] for each in work["other_quantities"]}
    assert results_of(EQUAL).work_results[0].trade("change", "base") == ""


def test_pull_request_says_the_verdict_of_each_required_quantity_in_the_comment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    save_run(Path("run.json"), LARGER)
    done = invoke(
        "pull-request", "run.json", "--require", "memory_peak<=+2%", "--body", "comment.md", "-o", "run.junit.xml"
    )
    assert done.exit_code == EXCEEDED
    assert 'failures="1"' in Path("run.junit.xml").read_text()
    body = Path("comment.md").read_text()
    assert body.count("- exceeded: ") == 1
    assert body.count("- passed: ") == 1
    assert body.count("- trade: ") == 1
    assert "slower" not in body.splitlines()[2]
    Path("gate.toml").write_text('require = ["memory_peak<=+2%", "throughput>=-2%"]\n')
    assert invoke("pull-request", "run.json", "--body", "comment.md").exit_code == EXCEEDED
    assert Path("comment.md").read_text().count("- passed: ") == 2


@pytest.mark.parametrize(
    ("peak", "requirement", "status", "word"),
    [
        (120 * MIB, "memory_peak<=+2%", EXCEEDED, "exceeded"),
        (100 * MIB, "memory_peak<=+2%", PASSED, "passed"),
        (120 * MIB, "memory_peak<=+30%", PASSED, "passed"),
        (100 * MIB, "energy_per_item<=+2%", NOT_COMPARABLE, "not comparable"),
    ],
)
def test_two_runs_are_compared_by_a_quantity_too(peak: int, requirement: str, status: int, word: str) -> None:
    for name, seed, own in (("a.json", 0, 100 * MIB), ("b.json", 1, peak)):
        save_run(Path(name), run_with(peaks={"torch": [own, own + 4096]}, seed=seed))
    done = CliRunner().invoke(gate, ["a.json", "b.json", "--require", requirement, "--json"])
    assert (done.exit_code, found_in(done)["status"]) == (status, word)
    shown = CliRunner().invoke(diff, ["a.json", "b.json", "--require", requirement, "--json"])
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["required"] == [found_in(done)]


def test_a_race_goes_on_until_what_is_required_is_decided() -> None:
    required = required_changes_of(["memory_peak<=+2%", "page_faults<=+2%"])
    for blocks, is_decided in ((6, False), (16, True)):
        run = run_with(
            peaks={"base": [MIB], "change": [MIB]}, page_faults={"base": 40.0, "change": 40.0}, blocks=blocks
        )
        plan = msgspec.structs.replace(run.plan, until_decided=True, gate=Gate("base", 0.02))
        assert are_required_decided(plan, run.processes)
        assert are_required_decided(with_required(plan, required), run.processes) is is_decided


def test_processes_start_alone_where_times_to_get_ready_are_required() -> None:
    run = run_with(peaks={"base": [MIB], "change": [MIB]})
    together = tuple(msgspec.structs.replace(block, started="together") for block in run.plan.blocks)
    plan = msgspec.structs.replace(run.plan, blocks=together)
    for text, started in (("memory_peak<=+2%", "together"), ("compile_time<=+2%", "alone")):
        assert {each.started for each in with_required(plan, required_changes_of([text])).blocks} == {started}


def test_no_command_claims_to_draw_a_plan_whose_requirements_have_no_baseline() -> None:
    plan = saved_run({"torch": 1e6, "jax": 1e6}).plan
    assert command_of(plan)
    assert command_of(with_required(plan, required_changes_of(["memory_peak<=+2%"]))) == ""


def test_what_is_required_of_a_run_and_itself_is_an_invalid_request() -> None:
    save_run(Path("run.json"), EQUAL)
    assert refusal("diff", "run.json", "run.json", "--require", "memory_peak<=+2%").code == "E_REQUIRE"
    assert invoke("diff", "run.json", "run.json").exit_code == 1
