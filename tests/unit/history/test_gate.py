"""The gate's exit status for every way a comparison can come out."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from fairlap.cli.commands.stored_runs.diff import command as diff
from fairlap.cli.commands.stored_runs.gate import command as gate
from fairlap.history.between_runs import is_same_run
from fairlap.history.gate import Finding, Status, overall
from fairlap.meters import disturbances
from fairlap.meters.memory import Memory
from fairlap.meters.stolen_time import E_BUSY_MACHINE
from fairlap.race.run import Run
from fairlap.render.ci_reports.outcomes import job_outcomes
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.store.runs.run_file import save_run
from saved_runs import MACHINE, saved_run

PASSED, SLOWER, INCONCLUSIVE, NOT_COMPARABLE = 0, 1, 2, 3


def run_gate(tmp_path: Path, *runs: Run, options: tuple[str, ...] = ()) -> tuple[int, str]:
    files = []
    for number, run in enumerate(runs):
        file = tmp_path / f"{number}.json"
        save_run(file, run)
        files.append(str(file))
    done = CliRunner().invoke(gate, [*files, *options])
    return done.exit_code, done.output


BEFORE = saved_run({"torch": 1e6})


@pytest.mark.parametrize(
    ("after", "options", "status"),
    [
        (saved_run({"torch": 1e6}, seed=1), (), PASSED),
        (saved_run({"torch": 0.7e6}, seed=1), (), PASSED),
        (saved_run({"torch": 1.5e6}, seed=1), (), SLOWER),
        (saved_run({"torch": 1.1e6}, seed=1), ("--margin", "0.2"), PASSED),
        (saved_run({"torch": 1.02e6}, seed=1, spread=0.05), (), PASSED),
        (saved_run({"torch": 1.02e6}, seed=1, spread=0.05), ("--strict",), INCONCLUSIVE),
        (saved_run({"torch": 1e6}, machine={**MACHINE, "cpu model": "two"}), (), NOT_COMPARABLE),
        (saved_run({"jax": 1e6}), (), NOT_COMPARABLE),
        (saved_run({"torch": 1.5e6}, data="synthetic"), (), NOT_COMPARABLE),
    ],
)
def test_two_runs(tmp_path: Path, after: Run, options: tuple[str, ...], status: int) -> None:
    assert run_gate(tmp_path, BEFORE, after, options=options)[0] == status


@pytest.mark.parametrize(
    ("medians_ns", "options", "status"),
    [
        ({"torch": 1e6, "jax": 1e6}, (), PASSED),
        ({"torch": 1e6, "jax": 0.9e6}, (), PASSED),
        ({"torch": 1e6, "jax": 1.05e6}, (), SLOWER),
        ({"torch": 1e6, "jax": 1.05e6}, ("--margin", "0.1"), PASSED),
        ({"torch": 1e6, "jax": 1e6, "litert": 1.2e6}, (), SLOWER),
        ({"torch": 1e6, "jax": 1e6, "litert": 1.2e6}, ("--candidate", "jax"), PASSED),
    ],
)
def test_contestants_of_one_run(
    tmp_path: Path, medians_ns: dict[str, float], options: tuple[str, ...], status: int
) -> None:
    assert run_gate(tmp_path, saved_run(medians_ns), options=("--baseline", "torch", *options))[0] == status


def test_few_blocks_are_inconclusive_and_fail_only_when_asked(tmp_path: Path) -> None:
    run = saved_run({"torch": 1e6, "jax": 2e6}, blocks=4)
    assert run_gate(tmp_path, run, options=("--baseline", "torch"))[0] == PASSED
    status, output = run_gate(tmp_path, run, options=("--baseline", "torch", "--strict"))
    assert status == INCONCLUSIVE
    assert "6 blocks" in output


def starved(run: Run) -> Run:
    """Of a contestant whose threads waited for cores for longer than they ran."""
    for process in run.processes:
        process.machine = {disturbances.WAITED: 1.1, disturbances.OTHERS: 1.3, disturbances.MEASURED: 1.0}
    return run


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_of_a_busy_machine_is_compared_with_no_other(tmp_path: Path, when: str) -> None:
    quiet = saved_run({"torch": 1e6}, threads=2)
    busy = starved(saved_run({"torch": 1.5e6}, threads=2, seed=1))
    runs = (busy, quiet) if when == "before" else (quiet, busy)
    status, text = run_gate(tmp_path, *runs, options=("--json", "--require", "latency<=+2%"))
    found = json.loads(text)
    assert status == found["exit_status"] == NOT_COMPARABLE
    assert [each["status"] for each in found["findings"]] == ["not comparable"] * 2
    assert all(f"{E_BUSY_MACHINE}]" in each["text"] and each["ratio"] is None for each in found["findings"])
    files = [str(tmp_path / "0.json"), str(tmp_path / "1.json")]
    done = CliRunner().invoke(diff, [*files, "--json"])
    [difference] = json.loads(done.output)["differences"]
    assert (done.exit_code, difference["regression"]["change"]) == (1, "not comparable")
    assert difference["why_no_verdict"].startswith(when)
    assert difference["why_no_verdict"].endswith(f"[{E_BUSY_MACHINE}]")
    assert difference["medians_ns"][0] != difference["medians_ns"][1]


def test_memory_of_a_busy_machine_is_compared(tmp_path: Path) -> None:
    runs = [starved(saved_run({"torch": 1e6}, threads=2, seed=seed)) for seed in (0, 1)]
    for run in runs:
        for process in run.processes:
            process.memory = Memory({"peak": 1 << 20})
    _, text = run_gate(tmp_path, *runs, options=("--json", "--require", "memory_peak<=+5%"))
    assert [each["status"] for each in json.loads(text)["findings"]] == ["not comparable", "passed"]


def test_one_thread_that_waited_is_compared_all_the_same(tmp_path: Path) -> None:
    runs = [starved(saved_run({"torch": 1e6}, threads=1, seed=seed)) for seed in (0, 1)]
    assert run_gate(tmp_path, *runs)[0] == PASSED


@pytest.mark.parametrize("arguments", [(), ("--require", "latency<=+2%")])
def test_commands_are_named_as_what_they_are(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    runs = [run_of_commands(1e6 * (1 + 0.5 * seed), seed) for seed in (0, 1)]
    _, text = run_gate(tmp_path, *runs, options=arguments)
    done = CliRunner().invoke(diff, [str(tmp_path / "0.json"), str(tmp_path / "1.json"), *arguments])
    for shown in (text, done.output):
        assert shown.count("commands · as-found · ") >= 1 + bool(arguments)
        assert "callable" not in shown


def run_of_commands(median_ns: float, seed: int) -> Run:
    """``sleep`` in the place of a framework."""
    run = saved_run({"torch": median_ns}, seed=seed)
    work = Work("callable", 1)
    names = Contestants("command:run=sleep 0.1")
    run.plan = msgspec.structs.replace(run.plan, works=(work,), contestants=names)
    for process in run.processes:
        process.work_id, process.contestant = work.id, names[0].text
    return run


def test_a_contestant_that_was_disqualified_is_not_comparable(tmp_path: Path) -> None:
    run = saved_run({"torch": 1e6, "jax": 1e6})
    run.processes[1].outcome, run.processes[1].message = "disqualified", "logits differs"
    status, output = run_gate(tmp_path, run, options=("--baseline", "torch"))
    assert status == NOT_COMPARABLE
    assert "jax is not ranked" in output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--baseline", "mxnet"), "mxnet did not run; this run has torch"),
        ((), "give a second run, or --baseline"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_a_gate_that_is_called_wrongly_never_passes(tmp_path: Path, options: tuple[str, ...], text: str) -> None:
    status, output = run_gate(tmp_path, BEFORE, options=options)
    assert status == NOT_COMPARABLE
    assert text in output


def test_two_files_take_no_baseline(tmp_path: Path) -> None:
    status, output = run_gate(tmp_path, BEFORE, BEFORE, options=("--baseline", "torch"))
    assert status == NOT_COMPARABLE
    assert "--baseline" in output


def test_a_file_that_is_not_there_or_no_run_is_not_comparable(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    for file in (bad, tmp_path / "none.json"):
        done = CliRunner().invoke(gate, [str(file), str(file)])
        assert done.exit_code == NOT_COMPARABLE
        assert "fairlap: " in done.output


def test_a_slowdown_outranks_what_could_not_be_compared() -> None:
    findings = [Finding(Status.PASSED, ""), Finding(Status.NOT_COMPARABLE, ""), Finding(Status.SLOWER, "")]
    assert overall(findings, strict=False) is Status.SLOWER
    assert overall(findings[:2], strict=False) is Status.NOT_COMPARABLE
    assert overall([], strict=False) is Status.NOT_COMPARABLE


def test_diff_prints_a_line_for_each_contestant(tmp_path: Path) -> None:
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    save_run(one, saved_run({"torch": 1e6, "jax": 1e6}))
    save_run(other, saved_run({"torch": 1.5e6, "jax": 1e6}))
    done = CliRunner().invoke(diff, [str(one), str(other)])
    assert done.exit_code == 0
    assert "torch (1.0): slower: 1.5" in done.output
    assert "jax (1.0): equivalent" in done.output


def test_a_finding_speaks_of_the_candidate_and_says_its_verdict_once(tmp_path: Path) -> None:
    inside = ("--baseline", "torch")
    _, text = run_gate(tmp_path, saved_run({"torch": 1e6, "jax": 1.05e6}), options=inside)
    assert text.startswith("slower: ")
    assert ": jax takes 1.0" in text
    _, text = run_gate(tmp_path, saved_run({"torch": 1e6, "jax": 1.02e6}, spread=0.2), options=inside)
    assert text.startswith("inconclusive: ")
    assert text.count("inconclusive") == 1
    _, text = run_gate(tmp_path, BEFORE, saved_run({"torch": 1.02e6}, seed=1, spread=0.05))
    assert text.count("inconclusive") == 1


@pytest.mark.slow_but("0.0-0.003-False")
@pytest.mark.parametrize(
    ("slower_by", "spread", "until_decided"),
    [(0.0, 0.003, False), (0.03, 0.005, False), (0.03, 0.02, False), (0.03, 0.02, True), (0.12, 0.02, False)],
)
def test_every_bound_is_compared_with_the_interval_of_the_table(
    tmp_path: Path, slower_by: float, spread: float, until_decided: bool
) -> None:
    run = saved_run({"torch": 1e6, "jax": 1e6 * (1 + slower_by)}, blocks=16, spread=spread)
    run.plan = msgspec.structs.replace(run.plan, until_decided=until_decided)
    row = next(each for each in results_of(run, baseline="torch").rows if each.contestant == "jax")
    assert row.ratio is not None
    assert row.ratio.low is not None
    assert row.ratio.high is not None
    for bound in (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2):
        options = ("--baseline", "torch", "--max-slowdown", str(bound), "--strict", "--json")
        status, text = run_gate(tmp_path, run, options=options)
        found = json.loads(text)
        assert [found["findings"][0][name] for name in ("ratio", "low", "high")] == [
            row.ratio.value, row.ratio.low, row.ratio.high,
        ]  # fmt: skip
        assert found["max_slowdown"] == bound
        above, below = row.ratio.low > 1 + bound, row.ratio.high < 1 + bound
        assert status == found["exit_status"] == (SLOWER if above else PASSED if below else INCONCLUSIVE)
        outcomes = {
            each.row.contestant: each.outcome
            for each in job_outcomes(results_of(run, baseline="torch", max_slowdown=bound))
        }
        assert outcomes["jax"] == ("slower" if above else "passed" if below else "inconclusive")


@pytest.mark.parametrize("bound", ["1%", "5%", "30%"])
def test_two_runs_are_compared_with_the_bound_by_the_same_rule(tmp_path: Path, bound: str) -> None:
    after = saved_run({"torch": 1.05e6}, seed=1, spread=0.02)
    status, text = run_gate(tmp_path, BEFORE, after, options=("--max-slowdown", bound, "--strict", "--json"))
    [found] = json.loads(text)["findings"]
    edge = 1 + float(bound[:-1]) / 100
    above, below = found["low"] > edge, found["high"] < edge
    assert status == (SLOWER if above else PASSED if below else INCONCLUSIVE)


@pytest.mark.parametrize("twice", [("--baseline", "torch"), ("--margin", "3%")])
def test_an_option_given_twice_is_refused(tmp_path: Path, twice: tuple[str, ...]) -> None:
    run = saved_run({"torch": 1e6, "jax": 1e6})
    options = ("--baseline", "torch", "--max-slowdown", "3%", *twice)
    assert run_gate(tmp_path, run, options=options)[0] == NOT_COMPARABLE
    assert run_gate(tmp_path, run, options=options[:4])[0] == PASSED


def test_a_margin_is_a_share(tmp_path: Path) -> None:
    status, text = run_gate(tmp_path, BEFORE, BEFORE, options=("--margin", "nan"))
    assert status == NOT_COMPARABLE
    assert "'nan'" in text
    assert run_gate(tmp_path, BEFORE, saved_run({"torch": 1.1e6}, seed=1), options=("--margin", "20%"))[0] == PASSED


def test_machines_can_read_what_the_gate_and_diff_found(tmp_path: Path) -> None:
    status, text = run_gate(tmp_path, BEFORE, saved_run({"torch": 1.5e6}, seed=1), options=("--json",))
    found = json.loads(text)
    assert (status, found["exit_status"], found["findings"][0]["status"]) == (SLOWER, SLOWER, "slower")
    done = CliRunner().invoke(diff, [str(tmp_path / "0.json"), str(tmp_path / "1.json"), "--json"])
    [difference] = json.loads(done.output)["differences"]
    assert difference["regression"]["ratio"] == pytest.approx(1.5, rel=0.05)


def test_a_diff_of_runs_with_nothing_in_common_is_no_success(tmp_path: Path) -> None:
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    save_run(one, BEFORE)
    for after in (saved_run({"jax": 1e6}), saved_run({"torch": 1.5e6}, data="synthetic")):
        save_run(other, after)
        assert CliRunner().invoke(diff, [str(one), str(other)]).exit_code == 1


def test_a_gate_says_what_the_race_was_fed(tmp_path: Path) -> None:
    fed = "mlp · infer · fp32 · batch 1 · fed synthetic"
    run = saved_run({"torch": 1e6, "torch:feed=dataloader": 2e6}, data="synthetic")
    status, text = run_gate(tmp_path, run, options=("--baseline", "torch"))
    assert (status, text.startswith(f"slower: {fed}: torch:feed=dataloader takes")) == (SLOWER, True)
    status, text = run_gate(tmp_path, run, saved_run({"torch": 1e6, "torch:feed=dataloader": 3e6}, data="synthetic"))
    assert (status, text.count(f": {fed} · as-found · ")) == (SLOWER, 2)
    status, text = run_gate(tmp_path, BEFORE, saved_run({"torch": 1.5e6}, data="synthetic"))
    assert "! data differs: nothing was fed before, synthetic after" in text
    assert len(text.splitlines()) == 2


def test_a_run_and_itself_are_not_compared(tmp_path: Path) -> None:
    status, text = run_gate(tmp_path, BEFORE, BEFORE)
    assert (status, "[E_REQUEST]" in text) == (NOT_COMPARABLE, True)
    done = CliRunner().invoke(diff, [str(tmp_path / "0.json"), str(tmp_path / "1.json"), "--json"])
    assert (done.exit_code, json.loads(done.output)["same_run"]) == (1, True)


def test_two_runs_of_one_plan_are_two_runs() -> None:
    assert is_same_run(BEFORE, BEFORE)
    assert not is_same_run(BEFORE, saved_run({"torch": 1.0001e6}))
    empty = saved_run({"torch": 1e6}, blocks=1)
    empty.processes = []
    assert not is_same_run(empty, empty)
