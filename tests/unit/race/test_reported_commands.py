"""Commands race by the time that they report of their work, whatever their run takes.

The programs print times that were written into them, so what is expected is exact: the slow one waits less and reports
twice the time.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import invoke, output, refusal
from fairlap.comparing import compare
from fairlap.errors import InvalidRequest
from fairlap.history.between_runs import compare_saved_runs
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.render.plan_command import command_of
from fairlap.request.race_request import RaceRequest, read_request
from fairlap.store.figures import recorded_figures
from fairlap.store.runs.run_file import load_run
from fairlap.store.store import open_store

FAST, SLOW = "0.02 1000", "0.001 2000"  # seconds that it waits, nanoseconds that it reports
PROGRAM = """#!/bin/sh
sleep $1
noise=$(od -An -N1 -tu1 /dev/urandom)
echo "starting"
echo "$(($2 * (10000 + noise) / 10000)).5 ns"
"""
GOOGLE = '{"context": {}, "benchmarks": [{"name": "sum", "real_time": %s, "time_unit": "us"}]}'
RACE = ("--seconds", "0.02", "--conditions", "as-found", "--threads", "1", "--quiet")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "store.sqlite"))
    monkeypatch.chdir(tmp_path)
    Path("bench").write_text(PROGRAM)
    Path("bench").chmod(0o755)
    return tmp_path


def raced(*options: str, **commands: str) -> dict[str, Any]:
    return raced_in_blocks(6, *options, **commands)


def raced_in_blocks(blocks: int, /, *options: str, **commands: str) -> dict[str, Any]:
    given = [word for name, run in commands.items() for word in ("--command", f"{name}={run}")]
    done = invoke("compare", *given, *options, "--blocks", str(blocks), *RACE, "-o", "run.json", "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def outcomes() -> dict[str, tuple[str, str]]:
    return {each.contestant: (each.outcome, each.code) for each in load_run(Path("run.json")).processes}


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_race_a_store_a_history_a_gate_and_a_bundle_judge_by_what_is_reported() -> None:
    files = [word for name in ("x.md", "x.html", "x.junit.xml", "x.prom") for word in ("-o", name)]
    found = raced("--reported", "number", *files, fast=f"./bench {FAST}", slow=f"./bench {SLOW}")
    [work] = found["work_results"]
    [comparison] = work["comparisons"]
    low, high = comparison["interval"]
    assert (comparison["a"], comparison["verdict"]) in (("fast", "faster"), ("slow", "slower"))
    ratio = comparison["ratio"] if comparison["a"] == "slow" else 1 / comparison["ratio"]
    assert ratio == pytest.approx(2, rel=0.02)
    assert high / low < 1.1

    by_name = {row["contestant"]: row for row in found["rows"]}
    assert by_name["slow"]["reported_ns"]["value"] == pytest.approx(2020, rel=0.02)
    assert by_name["slow"]["reported_by"] == "number"
    assert by_name["slow"]["latency_p50_ns"]["value"] < by_name["fast"]["latency_p50_ns"]["value"]
    assert by_name["fast"]["place"] == "1"
    [others] = [each for each in work["other_quantities"] if each["metric"] == "latency"]
    [latency] = others["comparisons"]
    assert {latency["a"] if latency["ratio"] > 1 else latency["b"]} == {"fast"}  # its wall time is the longer one

    assert invoke("gate", "run.json", "--baseline", "fast", "--max-slowdown", "50%").exit_code == 1
    assert invoke("gate", "run.json", "--baseline", "slow", "--max-slowdown", "50%").exit_code == 0
    with open_store(reading=True) as store:
        figures = store.ask(recorded_figures, "callable", "")
    assert {each.quantity for each in figures} == {"time reported by number"}
    assert sorted(each.compared.value for each in figures) == pytest.approx([1010, 2020], rel=0.02)
    assert "commands · by times of number" in output("show", "last")
    output("bundle", "last", "-o", "x.fairlap")
    assert invoke("verify", "x.fairlap").exit_code == 0
    assert "time of a call" in Path("x.md").read_text()  # beside the reported one


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_gate_between_runs_compares_what_was_reported_by_the_same_format(place: Path) -> None:
    before = place / "before.json"
    raced("--reported", "number", bench=f"./bench {FAST}")
    Path("run.json").rename(before)
    raced("--reported", "number", bench=f"./bench {SLOW}")
    [difference] = compare_saved_runs(load_run(before), load_run(Path("run.json"))).differences
    assert difference.medians_ns == pytest.approx((1010, 2020), rel=0.02)
    raced("--reported", "number:ns", bench=f"./bench {SLOW}")
    assert not compare_saved_runs(load_run(before), load_run(Path("run.json"))).differences
    raced(bench=f"./bench {SLOW}")
    assert not compare_saved_runs(load_run(before), load_run(Path("run.json"))).differences


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_race_until_the_bound_is_decided_and_one_that_is_run_again_go_by_it() -> None:
    commands = [f"--command=fast=./bench {FAST}", f"--command=slow=./bench {SLOW}", "--reported=number"]
    done = invoke(
        "compare", *commands, "--baseline", "fast", "--max-slowdown", "50%", "--budget", "60s", *RACE, "-o",
        "run.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert invoke("gate", "run.json", "--baseline", "fast", "--max-slowdown", "50%").exit_code == 1
    again = invoke("rerun", "last", "-o", "again.json")
    assert again.exit_code == 0, again.output
    assert {each.headline_quantity for each in load_run(Path("again.json")).processes} == {"reported_ns"}


@pytest.mark.slow
@pytest.mark.sanitized
def test_reports_are_read_from_output_errors_and_a_file_which_is_new_each_time(place: Path) -> None:
    report = shlex.quote(GOOGLE)
    commands = {
        "output": f"printf {report} 3",
        "errors": f"sh -c 'printf \"$0\" 3 >&2' {report}",
        "file": f"sh -c 'test ! -e $1 && printf \"$0\" 3 > $1' {report} {{report}}",
    }
    raced("--reported", "google-benchmark:sum", **commands)
    processes = load_run(Path("run.json")).processes
    assert [each for each in processes if not each.finished] == []
    assert [each.headline.p50_ns for each in processes] == pytest.approx([3000.0] * len(processes))
    assert {each.headline.method for each in processes} == {"reported by google-benchmark, sum"}
    assert not list(place.glob("*report*"))


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_report_that_cannot_be_used_ends_its_contestant_alone() -> None:
    two = '{"context": {}, "benchmarks": [{"name": "a", "real_time": 1}, {"name": "b", "real_time": 1}]}'
    good = f"printf {shlex.quote(GOOGLE)} 3"
    raced(
        "--reported", "google-benchmark", good=good, none="true", no_file="true {report}",
        several=f"echo {shlex.quote(two)}",
    )  # fmt: skip
    assert outcomes() == {
        "good": ("finished", ""),
        "none": ("failed", "E_REPORT"),
        "no_file": ("failed", "E_REPORT"),
        "several": ("failed", "E_REPORT"),
    }
    messages = {each.contestant: each.message for each in load_run(Path("run.json")).processes}
    assert "--benchmark_format=json" in messages["none"]
    assert "--reported google-benchmark:NAME" in messages["several"]
    assert {len(each.splitlines()) for name, each in messages.items() if name != "good"} == {1}


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_report_that_breaks_off_during_the_timed_calls_is_found() -> None:
    Path("once").write_text("#!/bin/sh\ntest $(wc -l < runs) -gt 4 || echo 3 ns\necho >> runs\n")
    Path("once").chmod(0o755)
    Path("runs").touch()
    raced_in_blocks(1, "--reported", "number", once="./once", good="echo 3 ns")
    assert outcomes()["once"] == ("failed", "E_REPORT")


def drawn(**request: object) -> Plan:
    return plan_of(msgspec.convert(request, RaceRequest, dec_hook=lambda kind, value: kind(value)))


@pytest.mark.parametrize(
    "request_",
    [
        {"models": ["callable"], "contestants": "python:call=os.getpid", "reported": "pyperf"},
        {"commands": {"a": "true"}, "contestants": "python:call=os.getpid", "reported": "pyperf"},
        {"commands": {"a": "true"}, "reported": "perf"},
        {"commands": {"a": {"run": "true", "reported": "pyperf"}, "b": "true"}},
        {"commands": {"a": {"run": "true", "reported": "pyperf"}, "b": "true"}, "reported": "number"},
        {"commands": {"a": "true"}, "reported": "pyperf", "load": {"p99": "20ms"}},
    ],
)
def test_what_cannot_race_by_one_kind_of_report_is_refused(request_: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as raised:
        drawn(**request_)
    assert raised.value.code == "E_REPORT"


def test_the_command_line_refuses_it_too() -> None:
    assert refusal("compare", "--command", "a=true", "--reported", "perf").code == "E_REPORT"
    assert refusal("compare", "mlp", "--on", "torch", "--reported", "pyperf").code == "E_REPORT"


def test_commands_of_a_request_file_may_have_benchmarks_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "race.toml"
    file.write_text('reported = "pyperf:sum"\n[commands]\na = "./a"\nb = { run = "./b", reported = "pyperf:other" }\n')
    plan = plan_of(read_request(file))
    assert [dict(name.options)["reported"] for name in plan.contestants] == ["pyperf:sum", "pyperf:other"]
    assert command_of(plan) == ""  # the command line cannot say it


def test_a_plan_of_reports_is_drawn_again_by_its_command() -> None:
    plan = drawn(commands={"a": "./a {report}", "b": "./b"}, reported="hyperfine:./x y", seed=3)
    words = shlex.split(command_of(plan))
    again = json.loads(output(*words[1:], "--dry-run", "--json"))
    assert again == json.loads(msgspec.json.encode(plan))


@pytest.mark.slow
@pytest.mark.sanitized
def test_programs_race_by_their_reports_from_python_too() -> None:
    options = {"blocks": 1, "seconds": 0.02, "conditions": "as-found", "threads": 1}
    commands = {"fast": f"./bench {FAST}", "slow": f"./bench {SLOW}"}
    found = compare("callable", on=(), commands=commands, reported="number", **options)
    assert [row.contestant for row in found.rows] == ["fast", "slow"]
    assert all(row.reported_by == "number" for row in found.rows)
