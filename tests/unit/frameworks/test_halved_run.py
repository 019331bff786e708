"""Programs that repeat their work until some time has passed are known by a run that is stopped."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_line import invoke
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.programs.command import CommandLine
from fairlap.frameworks.programs.halved_run import LONGEST_S, Used, run_halved, times_itself
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.store.runs.run_file import load_run

HARNESS = """
import sys, time

def kernel():
    return sum(range({work}))

began_s, count = time.perf_counter(), 0
while time.perf_counter() - began_s < {seconds}:
    kernel()
    count += 1
if "silent" not in sys.argv:
    print(f"kernel: {{1e6 * (time.perf_counter() - began_s) / count:.1f}} us per iteration")
"""
AUTORANGE = """
import time

def timed(count):
    began_s = time.perf_counter()
    for _ in range(count):
        sum(range(300))
    return time.perf_counter() - began_s

count = 1
while timed(count) < 0.2:
    count *= 2
"""


def planted(usual: Used, halved: Sequence[Used | None]) -> bool:
    """Whether these runs show a program that times itself."""
    runs = iter([halved[0], usual, *halved[1:]])
    return times_itself(usual, lambda _seconds: next(runs))


@pytest.mark.parametrize(
    ("usual", "halved", "found"),
    [
        (Used(0.5, 0.49), [Used(0.51, 0.25)] * 2, True),  # it repeats for half a second
        (Used(0.5, 0.98), [Used(0.51, 0.48)] * 2, True),  # likewise, on two threads
        (Used(0.5, 0.13), [Used(0.54, 0.09)] * 2, False),  # with a quarter of a core, which it may have between stops
        (Used(0.5, 0.49), [Used(1.0, 0.49)] * 2, False),  # it has so much to do
        (Used(0.5, 0.49), [Used(0.60, 0.50)] * 2, False),  # what was stopped was only a part of it
        (Used(0.5, 0.01), [Used(0.50, 0.005)] * 2, False),  # it sleeps
        (Used(0.5, 0.49), [Used(0.51, 0.25), Used(1.0, 0.49)], False),  # once it was disturbed
        (Used(0.5, 0.49), [None], False),
        (Used(0.02, 0.02), [Used(0.02, 0.01)] * 2, False),  # too short to be stopped in the middle
        (Used(2 * LONGEST_S, 2 * LONGEST_S), [Used(1.0, 1.0)] * 2, False),
    ],
)
def test_wall_time_that_stays_while_the_work_shrinks_does_not_follow_it(
    usual: Used, halved: Sequence[Used | None], found: bool
) -> None:
    assert planted(usual, halved) is found


def has_core_to_itself() -> bool:
    usual = run_halved([sys.executable, "-I", "-S", "-c", "sum(range(8_000_000))"], None, 0.0)
    return usual is not None and usual.cpu_s >= 0.8 * usual.wall_s


def require_core_to_itself() -> None:
    if not has_core_to_itself():
        pytest.skip("other programs have the cores")


def harness(folder: Path, work: int, seconds: float = 0.5) -> Path:
    script = folder / f"harness-{work}.py"
    script.write_text(HARNESS.format(work=work, seconds=seconds))
    return script


def codes_of(words: Sequence[str]) -> list[str]:
    """After a first call and a timed one."""
    found = find("callable")
    inputs = {"ticket": np.ones((1, 4), np.float32)}
    work = Workload(found.spec, found.package, 1, "infer", "fp32", {}, inputs)
    made = CommandLine().prepare(work, Settings(1, options={"run": shlex.join(words)}), lambda name: nullcontext())
    call = made.bind(inputs)
    call()
    call()
    assert made.notices is not None
    assert made.notices() == made.notices()
    return [notice.code for notice in made.notices()]


def test_a_harness_that_prints_nothing_is_known(tmp_path: Path) -> None:
    """Other programs may take the core: of several tries before and after which it was free, one shows it."""
    script = harness(tmp_path, 1000, seconds=0.25)
    in_vain = disturbed = 0
    while disturbed < 2:
        if has_core_to_itself():
            if codes_of([sys.executable, "-I", "-S", str(script), "silent"]) == ["W_TIMES_ITSELF"]:
                return
            if has_core_to_itself():
                in_vain += 1
                assert in_vain < 5
                continue
        disturbed += 1
    pytest.skip("other programs have the cores")


def test_a_program_that_fails_or_is_not_there_shows_nothing(tmp_path: Path) -> None:
    assert run_halved([sys.executable, "-c", "raise SystemExit(3)"], None, 0.0) is None
    assert times_itself(Used(0.5, 0.5), partial(run_halved, [str(tmp_path / "none")], None)) is False


@pytest.mark.slow
@pytest.mark.parametrize("argument", ["", "silent"])
def test_harnesses_of_a_factor_of_two_that_race_by_wall_time_have_the_warning(tmp_path: Path, argument: str) -> None:
    require_core_to_itself()
    given = []
    for name, work in (("old", 2000), ("new", 1000)):
        run = shlex.join([sys.executable, "-I", "-S", str(harness(tmp_path, work)), argument])
        given += ["--command", f"{name}={run}"]
    done = invoke(
        "compare", *given, "--blocks", "2", "--seconds", "0.02", "--conditions", "as-found", "--no-store", "--quiet",
        "-o", str(tmp_path / "run.json"),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    for process in load_run(tmp_path / "run.json").processes:
        assert [warning.code for warning in process.warnings].count("W_TIMES_ITSELF") == 1


@pytest.mark.slow
def test_a_harness_that_doubles_its_repetitions_is_known(tmp_path: Path) -> None:
    require_core_to_itself()
    script = tmp_path / "autorange.py"
    script.write_text(AUTORANGE)
    assert codes_of([sys.executable, "-I", "-S", str(script)]) == ["W_TIMES_ITSELF"]


SOURCE = "".join(f"template<int N> struct A{n} {{ static int f(int x) {{ return x * N; }} }};\n" for n in range(2000))
PYTHON = f"{shlex.quote(sys.executable)} -I -S -c "
ORDINARY = {
    "sleep": "sleep 0.3",
    "python": PYTHON + shlex.quote("sum(i * i for i in range(4_000_000))"),
    "imports": f"{shlex.quote(sys.executable)} -c 'import numpy, scipy.stats'",
    "sort": "sort numbers",
    "compress": "gzip -9 -c numbers",
    "hash": "sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do cat numbers; done | sha512sum'",
    "compile": "g++ -O2 -c source.cpp -o /dev/null",
    "awk": "awk 'BEGIN { for (i = 0; i < 4000000; i++) x += i * i; print x }'",
    "search": "sh -c 'for i in 1 2 3 4 5; do grep -c 9.*8.*7.*6 numbers; done'",
    "threads": PYTHON
    + shlex.quote(
        "import hashlib, threading\n"
        "each = [threading.Thread(target=lambda: hashlib.sha512(bytes(100_000_000))) for _ in range(2)]\n"
        "[t.start() for t in each]; [t.join() for t in each]"
    ),
    "processes": PYTHON
    + shlex.quote(
        "import os\nfor _ in range(2):\n    if not os.fork(): sum(range(10_000_000)); os._exit(0)\nos.wait(); os.wait()"
    ),
    "waits": PYTHON + shlex.quote("import time; sum(range(8_000_000)); time.sleep(0.1); sum(range(8_000_000))"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, drawn = tmp_path_factory.mktemp("ordinary"), random.Random(1)
    (folder / "numbers").write_text("".join(f"{drawn.random():.15f}\n" for _ in range(300_000)))
    (folder / "source.cpp").write_text("#include <map>\n#include <string>\n#include <regex>\n" + SOURCE)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("program", ORDINARY)
def test_no_ordinary_program_is_said_to_time_itself(program: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(ORDINARY[program])
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    monkeypatch.chdir(files)
    monkeypatch.setenv("LC_ALL", "C")
    assert codes_of(words) == []
    usual = run_halved(words, os.getcwd(), 0.0)  # noqa: PTH109
    assert usual is not None
    assert not times_itself(usual, partial(run_halved, words, None))
