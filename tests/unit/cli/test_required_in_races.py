"""Bounds on changes, ``memory_peak<=+2%``, in ``compare``, in suites and from Python: the gate's rule and statuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import fairlap
import msgspec
import pytest
from command_line import invoke, output, refusal
from fairlap.errors import InvalidRequest
from fairlap.meters.memory import Memory
from fairlap.race.planning.plan_required import with_required
from fairlap.race.run import Run
from fairlap.render.report.page import page_of
from fairlap.render.text.terminal import text_of
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.runs.run_file import save_run
from fairlap.verdict import Gate, changes_among, required_changes_of
from published_schemas import checked
from saved_runs import saved_run
from suites import folders_of_callables, given_races, suite_of_calls

MIB = 2**20
SIZES = {"small": 8 * MIB, "large": 64 * MIB}
HOLD = "held = bytearray({size}); held[::4096]"
COMMANDS = [
    word
    for name, size in SIZES.items()
    for word in ("--command", f'{name}={sys.executable} -I -S -c "{HOLD.format(size=size)}"')
]
RACE = ("--threads", 1, "--seconds", 0.05, "--conditions", "as-found", "-q", "--no-store")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def peak_by_hand(size: int) -> float:
    """Run the same program, and have it print what the kernel says that it held."""
    program = f"{HOLD.format(size=size)}; print(open('/proc/self/status').read())"
    printed = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    [line] = [each for each in printed.stdout.splitlines() if each.startswith("VmHWM")]
    return float(line.split()[1])


@pytest.mark.slow
def test_the_ratio_that_decides_is_that_of_peaks_measured_by_hand() -> None:
    large, small = (median(peak_by_hand(SIZES[name]) for _ in range(5)) for name in ("large", "small"))
    by_hand = large / small
    race = ("compare", *COMMANDS, *RACE, "--blocks", 6, "-o", "run.json")
    done = invoke(*race, "--require", "memory_peak<=+2%", "--json")
    [time, memory] = json.loads(done.stdout)["findings"]
    assert (done.exit_code, time["required"], memory["status"]) == (1, "", "exceeded")
    assert memory["ratio"] == pytest.approx(by_hand, rel=0.03)
    bounds = ("--max-slowdown", "900%", "--require", f"memory_peak<=+{100 * (1.1 * by_hand - 1):.0f}%")
    assert invoke("gate", "run.json", "--baseline", "small", *bounds).exit_code == 0


def run_with(peaks: dict[str, int], times_ns: dict[str, float] | None = None, blocks: int = 12) -> Run:
    run = saved_run(times_ns or dict.fromkeys(peaks, 1e6), blocks=blocks)
    for process in run.processes:
        process.memory = Memory({"peak": peaks[process.contestant]})
    return run


def required(run: Run, *texts: str, max_slowdown: float = 0.1) -> Run:
    gated = msgspec.structs.replace(run.plan, gate=Gate(run.plan.contestants[0].text, max_slowdown))
    run.plan = with_required(gated, required_changes_of(texts))
    return run


@pytest.mark.slow_but("5-texts0", "12-texts1")
@pytest.mark.parametrize("texts", [("memory_peak<=+2%",), ("memory_peak<=+30%", "throughput>=-2%")])
@pytest.mark.parametrize("blocks", [5, 7, 12])
def test_race_and_gate_have_the_same_findings(texts: tuple[str, ...], blocks: int) -> None:
    run = required(run_with({"base": 100 * MIB, "change": 120 * MIB}, blocks=blocks), *texts)
    results = results_of(run)
    save_run(Path("run.json"), run, results)
    options = [word for text in texts for word in ("--require", text)]
    gate = invoke("gate", "run.json", "--baseline", "base", "--max-slowdown", "10%", *options, "--json")
    findings = json.loads(gate.stdout)["findings"]
    assert len(findings) == 1 + len(texts)
    assert json.loads(Path("run.json").read_bytes())["findings"] == findings
    assert [msgspec.to_builtins(each.printed) for each in results.findings] == findings
    for shown in (text_of(results), page_of(results)):
        for finding in results.findings:
            assert finding.word in shown
            assert re.split("[<>]", finding.required)[0] in shown


def test_a_run_without_bounds_on_changes_has_no_findings() -> None:
    run = run_with({"base": MIB, "change": MIB})
    assert results_of(run).findings == ()
    save_run(Path("run.json"), run, results_of(run))
    assert "findings" not in json.loads(Path("run.json").read_bytes())


def plan_of(*options: object) -> dict[str, Any]:
    drawn = output("compare", "mlp", "--on", "torch,jax", "--threads", 1, *options, "--dry-run", "--json")
    return json.loads(drawn)  # type: ignore[no-any-return]


def test_the_reference_is_the_first_contestant_or_the_baseline_and_the_bound_of_the_time_that_of_gates() -> None:
    plan = plan_of("--require", "memory_peak<=+2%, latency_p99<20ms", "--require", "cpu_time<=+5%")
    assert plan["gate"] == {"baseline": "torch", "max_slowdown": 0.02}
    assert [each["text"] for each in plan["required"]] == ["memory_peak<=+2%", "cpu_time<=+5%"]
    plan = plan_of("--require", "memory_peak<=+2%", "--baseline", "jax", "--max-slowdown", "3%")
    assert plan["gate"] == {"baseline": "jax", "max_slowdown": 0.03}
    assert plan_of("--require", "latency_p99<20ms").get("required", []) == []


def test_limits_on_figures_and_bounds_on_changes_are_told_apart() -> None:
    changes, limits = changes_among("latency_p99<20ms, memory_peak<=+2%,memory<4GB,throughput>=-5%")
    assert [each.text for each in changes] == ["memory_peak<=+2%", "throughput>=-5%"]
    assert limits == "latency_p99<20ms,memory<4GB"
    assert changes_among("") == ((), "")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--require", "memory_peek<=+2%"), "E_REQUIRE"),
        (("--require", "memory_peak<=+2%,memory_peak<=+3%"), "E_REQUIRE"),
        (("--require", "memory_peak<=+2%", "--only-winner"), "E_REQUEST"),
        (("--require", "memory_peak<=+2%", "--baseline", "tensorflow"), "E_REQUEST"),
        (("--require", "latency<=+2%"), "E_QUANTITY"),
        (("--require", "device_span<=+2%"), "E_QUANTITY"),
        (("--require", "time_to_first_gradient<=+2%"), "E_QUANTITY"),
        (("--require", "time_to_score<=+2%"), "E_QUANTITY"),
        (("--require", "energy_per_item<=+2%"), "E_QUANTITY"),
    ],
)
def test_what_the_race_would_not_measure_is_refused_in_a_line_before_it(
    options: tuple[str, ...], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoSensor:
        sensors, absent = (), "powercap cannot be read"

        def __init__(self, device: str, clock: str) -> None:
            assert device == "cpu"

    monkeypatch.setattr("fairlap.meters.energy.EnergyMeter", NoSensor)
    assert refusal("compare", "mlp", "--on", "torch,jax", *options).code == code
    if code != "E_REQUEST":
        with pytest.raises(InvalidRequest) as raised:
            fairlap.compare("mlp", on=["torch", "jax"], require=options[1].split(","))
        assert raised.value.code == code


def test_a_bound_on_a_change_takes_two_contestants_and_a_plan_of_its_own() -> None:
    assert refusal("compare", "mlp", "--on", "torch", "--require", "memory_peak<=+2%").code == "E_REQUIRE"
    output("compare", "mlp", "--on", "torch,jax", "--dry-run", "--save-plan", "plan.json")
    again = refusal("compare", "--plan", "plan.json", "--require", "memory_peak<=+2%")
    assert again.code == "E_REQUIRE"


def test_the_command_of_a_run_has_its_bounds() -> None:
    from fairlap.render.plan_command import command_of

    plan = required(saved_run({"torch": 1e6, "jax": 1e6}), "memory_peak<=+2%", "cpu_time<=+5%").plan
    assert "--require 'memory_peak<=+2%' --require 'cpu_time<=+5%'" in command_of(plan)


@pytest.fixture
def suite(place: Path) -> Path:
    folders_of_callables(place, {"f": 10, "g": 10}, {"f": 10, "g": 10})
    (place / "suite.toml").write_text(suite_of_calls(["f", "g"], 'max_slowdown = "5%"\nthreads = 1\n'))
    return place


BETWEEN = ("suite", "run", "suite.toml", "--base", "base", "--change", "change", "-q", "--json")


@pytest.mark.usefixtures("suite")
def test_a_suite_takes_bounds_for_all_its_races(monkeypatch: pytest.MonkeyPatch) -> None:
    given_races(monkeypatch, peak_of_change=1.1)
    for bound, status, word in (("+2%", 1, "exceeded"), ("+20%", 0, "passed")):
        done = invoke(*BETWEEN, "--require", f"memory_peak<={bound}")
        races = checked(done.stdout)["races"]
        assert (done.exit_code, {race["findings"][1]["status"] for race in races}) == (status, {word})


def test_a_race_of_a_suite_has_bounds_of_its_own(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races = given_races(monkeypatch, peak_of_change=1.1)
    text = (suite / "suite.toml").read_text()
    (suite / "suite.toml").write_text(text.replace('name = "g"', 'name = "g"\nrequire = "memory_peak<=+2%"'))
    done = invoke(*BETWEEN)
    assert done.exit_code == 1
    assert {name: len(plan.required) for name, plan in races.plans.items()} == {"f": 0, "g": 1}
    (suite / "suite.toml").write_text(text.replace('name = "g"', 'name = "g"\nrequire = "energy<=+2%"'))
    done = invoke(*BETWEEN)
    assert (done.exit_code, "E_REQUIRE" in done.output, "g: " in done.output) == (3, True, True)


@pytest.mark.usefixtures("suite")
def test_what_a_faster_change_costs_is_one_sentence_of_its_race(monkeypatch: pytest.MonkeyPatch) -> None:
    given_races(monkeypatch, change={"f": 0.8}, peak_of_change=1.2)
    found = checked(invoke(*BETWEEN, "-o", "suite.md").stdout)
    trades = {race["name"]: race["works"][0]["trades"] for race in found["races"]}
    [trade] = trades.pop("f")
    assert trade.endswith("for 20 % more peak memory")
    assert trades == {"g": []}  # as fast as before
    assert f"trade: f: {trade}" in Path("suite.md").read_text()


def test_a_suite_of_contestants_compares_with_the_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "suite.toml").write_text(
        '[[race]]\nname = "mlp"\nmodels = ["mlp"]\ncontestants = ["torch", "jax"]\nthreads = 1\n'
    )
    races = given_races(monkeypatch)
    done = invoke("suite", "run", "suite.toml", "-q", "--json", "--require", "memory_peak<=+2%")
    [plan] = races.plans.values()
    assert plan.gate == Gate("torch", 0.02)
    [race] = checked(done.stdout)["races"]
    assert (done.exit_code, race["findings"][1]["status"]) == (3, "not comparable")  # these races have no memory


def test_the_status_of_a_race_is_that_of_its_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """With processes that are given instead of measured."""

    def blocks_of(peaks: dict[str, int]) -> None:
        def run(self: Any, after_block: Any = None) -> None:
            for block in self.plan.blocks[:12]:
                for place in block.order:
                    name = self.plan.contestants[place].text
                    process = msgspec.structs.replace(pattern.processes[0], contestant=name, block=block.number)
                    process.work_id, process.conditions = self.plan.works[0].id, block.conditions
                    process.memory = Memory({"peak": peaks[name]})
                    self.processes.append(process)

        monkeypatch.setattr("fairlap.race.race.Race.run", run)

    pattern = saved_run({"small": 1e6, "large": 1e6}, blocks=2)
    assert all(isinstance(each, ProcessResult) for each in pattern.processes)
    race = ("compare", *COMMANDS, *RACE, "--blocks", 12, "--require", "memory_peak<=+2%")
    for large, status in ((MIB, 0), (2 * MIB, 1)):
        blocks_of({"small": MIB, "large": large})
        assert invoke(*race).exit_code == status
