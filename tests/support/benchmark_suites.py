"""A project with two versions, and benchmarks of it as the documentation of asv and pytest-benchmark writes them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PROJECT = '''
"""A project whose solve takes {steps} steps for each item."""


def solve(n):
    total = 0
    for each in range(n * {steps}):
        total += each
    return total


def iterations(n):
    return n * {iterations}


def hold(megabytes):
    return bytearray(megabytes * {megabytes} * 10**6)
'''

ASV = '''
import time

import hot
from hot import solve


class TimeSuite:
    """As in asv's quick start, with parameters as in its guide."""

    params = [100, 1000]
    param_names = ["n"]

    def setup(self, n):
        time.sleep(0.02)
        self.n = n

    def time_solve(self, n):
        solve(self.n)

    def time_untouched(self, n):
        for each in range(self.n * 50):
            pass


class Cached:
    timeout = 30.0

    def setup_cache(self):
        return {"n": 200}

    def time_with_cache(self, cache):
        solve(cache["n"])

    def track_iterations(self, cache):
        return hot.iterations(cache["n"])

    track_iterations.unit = "iterations"


class PeakMemSuite:
    def peakmem_hold(self):
        self.held = hot.hold(20)


class Refuses:
    params = ([1, 2], ["a", None])

    def setup(self, number, text):
        if text is None:
            raise NotImplementedError("no text, no benchmark")

    def time_pair(self, number, text):
        solve(number)


def timeraw_import():
    return """
    import hot
    hot.solve(300)
    """


def setup_function():
    global wanted
    wanted = 50


def time_function():
    solve(wanted)


time_function.setup = setup_function
time_function.number = 7


class Broken:
    def setup(self):
        self.missing.attribute

    def time_broken(self):
        pass


def time_elsewhere():
    """Calls nothing of the project, but its module imports it."""


def not_a_benchmark():
    raise AssertionError
'''

ASV_NAMES = [
    "suite.Broken.time_broken",
    "suite.Cached.time_with_cache",
    "suite.Cached.track_iterations",
    "suite.PeakMemSuite.peakmem_hold",
    "suite.Refuses.time_pair(param1=1, param2='a')",
    "suite.Refuses.time_pair(param1=1, param2=None)",
    "suite.Refuses.time_pair(param1=2, param2='a')",
    "suite.Refuses.time_pair(param1=2, param2=None)",
    "suite.TimeSuite.time_solve(n=100)",
    "suite.TimeSuite.time_solve(n=1000)",
    "suite.TimeSuite.time_untouched(n=100)",
    "suite.TimeSuite.time_untouched(n=1000)",
    "suite.time_elsewhere",
    "suite.time_function",
    "suite.timeraw_import",
]
"""As asv-runner 0.3.2 lists them (``asv_runner.discovery.list_benchmarks``), with each set of parameters."""

PYTEST = """
import time

import pytest

from hot import solve


def test_solve(benchmark):
    result = benchmark(solve, 300)
    assert result > 0


@pytest.mark.parametrize("n", [100, 200])
@pytest.mark.benchmark(group="sizes")
def test_sizes(benchmark, n):
    benchmark(solve, n)


def test_pedantic(benchmark):
    def setup():
        time.sleep(0.02)
        return (100,), {}

    benchmark.pedantic(solve, setup=setup, rounds=3)


@pytest.mark.skip(reason="not on this machine")
def test_skipped(benchmark):
    benchmark(solve, 100)


def test_wrong_fixture(benchmark, no_such_fixture):
    benchmark(solve, 100)


def test_wrong_answer(benchmark):
    assert benchmark(solve, 100) == -1


def test_without_a_benchmark():
    raise AssertionError
"""

GOOGLE = '''#!/usr/bin/env python3
"""Prints what a program of Google Benchmark prints, for two benchmarks; speed.txt has the times."""
import json, pathlib, re, sys
names = ["BM_Sum/8", "BM_Copy<int>"]
options = dict(each.lstrip("-").split("=", 1) for each in sys.argv[1:])
if options.get("benchmark_list_tests") == "true":
    print("\\n".join(names))
    sys.exit(0)
filtered = [each for each in names if re.search(options.get("benchmark_filter", ""), each)]
times = json.loads(pathlib.Path(__file__).with_name("speed.txt").read_text())
print(json.dumps({"context": {"num_cpus": 1}, "benchmarks": [
    {"name": each, "run_name": each, "run_type": "iteration", "iterations": 10, "real_time": times[each],
     "cpu_time": times[each], "time_unit": "us"} for each in filtered]}))
'''


def project(folder: Path, steps: int = 50, iterations: int = 3, megabytes: int = 1) -> Path:
    (folder / "hot").mkdir(parents=True, exist_ok=True)
    (folder / "hot" / "__init__.py").write_text(PROJECT.format(steps=steps, iterations=iterations, megabytes=megabytes))
    return folder


def asv_folder(where: Path) -> Path:
    (where / "benchmarks").mkdir(parents=True, exist_ok=True)
    (where / "benchmarks" / "__init__.py").touch()
    (where / "benchmarks" / "suite.py").write_text(ASV)
    return where / "benchmarks"


def pytest_folder(where: Path) -> Path:
    (where / "tests").mkdir(parents=True, exist_ok=True)
    (where / "tests" / "test_speed.py").write_text(PYTEST)
    (where / "tests" / "pytest.ini").write_text("[pytest]\n")  # names are relative to it, wherever pytest is started
    return where / "tests"


def git(folder: Path, *words: str) -> str:
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    environment = {**os.environ, **dict.fromkeys(names, "nobody@example.org"), "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path) -> str:
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "A version")
    return git(folder, "rev-parse", "HEAD")
