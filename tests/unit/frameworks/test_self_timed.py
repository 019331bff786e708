"""Programs that time themselves are known by the report that they print."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from command_line import invoke
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.programs.command import CommandLine, fingerprint
from fairlap.frameworks.programs.self_timed import MOST_BYTES, harness_in
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.store.runs.run_file import load_run

GOOGLE = "Benchmark        Time       CPU   Iterations\nBM_sum         303 ns    302 ns        91324\n"
GO_TEST = "goos: linux\nBenchmarkSum-8   \t 1000000\t      1234 ns/op\nPASS\n"
CRITERION = "fib 20                  time:   [26.029 µs 26.251 µs 26.505 µs]\n"


@pytest.mark.parametrize(
    ("printed", "harness"),
    [
        (GOOGLE, "Google Benchmark"),
        ('{\n "benchmarks": [{\n      "run_type": "iteration",\n "real_time": 3.0e+02', "Google Benchmark"),
        ("name,iterations,real_time,cpu_time,time_unit,bytes_per_second\n", "Google Benchmark"),
        (".....................\nMean +- std dev: 306 ns +- 6 ns\n", "pyperf"),
        ("json_dumps: Mean +- std dev: 14.1 ms +- 0.2 ms\n", "pyperf"),
        ("Benchmark 1: true\n  Time (mean ± σ):       0.7 ms ±   0.1 ms    [User: 0.7 ms]\n", "hyperfine"),
        ("Benchmark 1: true\n  Time (abs ≡):          0.7 ms               [User: 0.6 ms]\n", "hyperfine"),
        (CRITERION, "criterion"),
        ("1000 loops, best of 5: 4.11 nsec per loop\n", "timeit"),
        (GO_TEST, "go test"),
        ("", ""),
        ("Time 12 ms\nBenchmark done, 3 iterations\nmean: 4 ns\n", ""),
        ('{"run_type": "warm", "real_time": 3}', ""),
    ],
)
def test_reports_of_harnesses_are_known(printed: str, harness: str) -> None:
    assert harness_in(printed.encode()) == harness


def codes_after_a_call(run: str, calls: int = 1, **options: str) -> list[str]:
    found = find("callable")
    inputs = {"ticket": np.ones((1, 4), np.float32)}
    work = Workload(found.spec, found.package, 1, "infer", "fp32", {}, inputs)
    made = CommandLine().prepare(work, Settings(1, options={"run": run, **options}), lambda name: nullcontext())
    call = made.bind(inputs)
    for _ in range(calls):
        call()
    assert made.notices is not None
    return [notice.code for notice in made.notices()]


def test_a_command_is_told_by_its_first_output() -> None:
    assert codes_after_a_call(f"printf {shlex.quote(GOOGLE)}", calls=2) == ["W_TIMES_ITSELF"]
    assert codes_after_a_call("echo done") == []


def test_it_is_told_by_output_that_all_must_have_too() -> None:
    run = f"printf %s {shlex.quote(CRITERION)}"
    assert codes_after_a_call(run, output=fingerprint(CRITERION.encode())) == ["W_TIMES_ITSELF"]


def test_much_output_is_read_to_its_end_and_its_beginning_kept() -> None:
    assert codes_after_a_call(f"head -c {9 * MOST_BYTES} /dev/zero") == []


def test_a_program_that_leaves_a_process_with_its_output_behind_has_ended(tmp_path: Path) -> None:
    script = tmp_path / "leaves.sh"
    script.write_text(f"sleep 60 & echo $! > {tmp_path / 'left'}\nprintf %s {shlex.quote(GO_TEST)}\n")
    assert codes_after_a_call(f"sh {script}") == ["W_TIMES_ITSELF"]
    subprocess.run(["kill", (tmp_path / "left").read_text().strip()], check=True)


def test_a_program_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    codes_after_a_call(f"sh -c 'exec >&-; sleep 0.2; echo ended > {tmp_path / 'ended'}'")
    assert (tmp_path / "ended").exists()


def warnings_of_race(folder: Path, **commands: str) -> dict[str, list[str]]:
    given = [word for name, run in commands.items() for word in ("--command", f"{name}={run}")]
    done = invoke(
        "compare", *given, "--blocks", "1", "--seconds", "0.02", "--conditions", "as-found", "--no-store", "--quiet",
        "-o", str(folder / "run.json"),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "[W_TIMES_ITSELF]" in done.stdout
    processes = load_run(folder / "run.json").processes
    return {each.contestant: [warning.code for warning in each.warnings] for each in processes}


def test_a_race_warns_of_the_command_that_times_itself(tmp_path: Path) -> None:
    found = warnings_of_race(tmp_path, harness=f"printf {shlex.quote(GOOGLE)}", plain="echo done")
    assert found["harness"].count("W_TIMES_ITSELF") == 1
    assert "W_TIMES_ITSELF" not in found["plain"]


@pytest.mark.slow
def test_a_program_of_google_benchmark_is_recognised(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None or not Path("/usr/include/benchmark/benchmark.h").exists():
        pytest.skip("needs g++ and libbenchmark-dev; the workflow installs them for `make test-slow`")
    source = tmp_path / "sum.cpp"
    source.write_text(
        """#include <benchmark/benchmark.h>
        static void sum(benchmark::State& state) {
          for (auto _ : state)
            for (int i = 0; i < COUNT; ++i) benchmark::DoNotOptimize(i);
        }
        BENCHMARK(sum)->MinTime(0.02);
        BENCHMARK_MAIN();
        """
    )
    for name, count in (("old", 200), ("new", 100)):
        words = [
            compiler,
            "-O2",
            f"-DCOUNT={count}",
            str(source),
            "-o",
            str(tmp_path / name),
            "-lbenchmark",
            "-lpthread",
        ]
        subprocess.run(words, check=True)
    runs = {"old": f"{tmp_path}/old", "new": f"{tmp_path}/new --benchmark_format=json"}
    found = warnings_of_race(tmp_path, **runs)
    assert all(codes.count("W_TIMES_ITSELF") == 1 for codes in found.values())
