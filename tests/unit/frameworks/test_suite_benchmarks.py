"""Benchmarks of asv and pytest-benchmark in their process: found by the tools' names, run with the tools' setup."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmark_suites import ASV_NAMES, asv_folder, project, pytest_folder
from fairlap.frameworks.suites.child_process import (
    BenchmarkFailed,
    BenchmarkProcess,
    BenchmarkSkipped,
    Member,
    Reply,
)
from fairlap.frameworks.suites.suite_benchmark import require_from_side
from fairlap.frameworks.suites.tools import ASV, PYTEST

WITHIN_S = 60.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write three versions, one of them in the folder of the suite."""
    place = project(tmp_path_factory.mktemp("place"), steps=1, iterations=1)
    project(place / "old")
    project(place / "new", iterations=4)
    asv_folder(place)
    pytest_folder(place)
    return place


def asked(mode: str, member: Member, side: Path | str) -> Reply:
    with BenchmarkProcess(mode, member, str(side)) as process:
        return process.reply(WITHIN_S)


def of_asv(place: Path, name: str, module: str = "benchmarks.suite") -> Member:
    return Member(ASV, str(place / "benchmarks"), name, module)


def of_pytest(place: Path, name: str) -> Member:
    file = str(place / "tests" / "test_speed.py")
    return Member(PYTEST, str(place / "tests"), f"test_speed.py::{name}", file, str(place / "tests"))


def samples(member: Member, side: Path, count: int = 3) -> tuple[list[float], float]:
    """Their values, and the seconds that one took from question to answer."""
    with BenchmarkProcess("run", member, str(side)) as process:
        process.reply(WITHIN_S)
        began_s = time.perf_counter()
        values = []
        for _ in range(count):
            process.ask()
            value = process.reply(WITHIN_S).value
            assert value is not None
            values.append(value)
        return values, (time.perf_counter() - began_s) / count


def test_benchmarks_of_asv_have_the_names_that_asv_gives_them(place: Path) -> None:
    found = asked("list", Member(ASV, str(place / "benchmarks")), place / "old")
    assert sorted(each.name for each in found.found) == ASV_NAMES
    assert not found.broken
    kinds = {each.name.rpartition(".")[2]: each.kind for each in found.found}
    assert kinds["track_iterations"] == "track"
    assert (kinds["peakmem_hold"], kinds["timeraw_import"]) == ("peakmem", "timeraw")


def test_benchmarks_of_pytest_are_those_that_pytest_collects(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"]
    collected = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False).stdout
    names = {line.rpartition("tests/")[2] for line in collected.splitlines() if "::" in line}
    found = asked("list", Member(PYTEST, str(place / "tests")), place / "old")
    assert {each.name for each in found.found} == names - {"test_speed.py::test_without_a_benchmark"}
    assert [each.tags for each in found.found if "test_sizes" in each.name] == [("sizes",)] * 2
    assert list(tmp_path.iterdir()) == []  # pytest-benchmark would leave a folder, pytest its cache


@pytest.mark.slow_but("pytest.ini")
@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("pytest.ini", "[pytest]\naddopts = --no-such-option\n", "unrecognized arguments: --no-such-option"),
        ("conftest.py", "import no_such_module\n", "No module named 'no_such_module'"),
        ("conftest.py", "import pytest\npytest.exit('not on this machine')\n", "not on this machine"),
    ],
)
def test_what_pytest_refuses_is_one_line_of_its_own_words(tmp_path: Path, file: str, text: str, words: str) -> None:
    (pytest_folder(project(tmp_path)) / file).write_text(text)
    by_hand = subprocess.run([sys.executable, "-m", "pytest", "tests"], cwd=tmp_path, capture_output=True, text=True)
    assert words in by_hand.stdout + by_hand.stderr
    [broken] = asked("list", Member(PYTEST, str(tmp_path / "tests")), tmp_path).broken
    assert words in broken.why
    assert f"status {by_hand.returncode}" in broken.why
    assert len(broken.why.splitlines()) == 1


@pytest.mark.slow_but("--failed-first")
@pytest.mark.parametrize("options", ["--failed-first", "-p no:benchmark"])
def test_options_of_a_project_that_pytest_alone_takes_do_not_end_it(tmp_path: Path, options: str) -> None:
    (pytest_folder(project(tmp_path)) / "pytest.ini").write_text(f"[pytest]\naddopts = {options}\n")
    found = asked("list", Member(PYTEST, str(tmp_path / "tests")), tmp_path)
    assert (len(found.found), found.broken) == (7, ())


@pytest.mark.slow
def test_setup_runs_before_each_sample_and_is_not_in_its_time(place: Path) -> None:
    """The setups sleep for 20 ms; 5,000 additions take well below a millisecond, and on a busy machine most of them."""
    for member in (of_asv(place, "suite.TimeSuite.time_solve(n=100)"), of_pytest(place, "test_pedantic")):
        values, took_s = samples(member, place / "old", 5)
        assert sorted(values)[1] < 20e6
        assert took_s > 0.02


@pytest.mark.slow
def test_a_time_is_that_of_a_loop_by_hand(place: Path) -> None:
    """A fixed number of calls, in a process that does nothing else; the machine may be busy, hence the fastest."""
    loop = "import timeit, hot; print(min(timeit.repeat(lambda: hot.solve(1000), number=10, repeat=20)) / 10 * 1e9)"
    for _ in range(5):
        by_hand = subprocess.run([sys.executable, "-c", loop], cwd=place / "old", capture_output=True, text=True)
        values, _ = samples(of_asv(place, "suite.TimeSuite.time_solve(n=1000)"), place / "old", 15)
        if 0.8 < min(values) / float(by_hand.stdout) < 1.25:
            return
    pytest.fail(f"{min(values)} ns, by hand {by_hand.stdout}")


@pytest.mark.parametrize(("side", "iterations"), [("old", 600), ("new", 800)])
def test_the_project_is_that_of_the_side_wherever_it_runs(
    place: Path, side: str, iterations: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)  # which has a third version
    values, _ = samples(of_asv(place, "suite.Cached.track_iterations"), place / side)
    assert values == [iterations] * 3


def test_a_peak_of_memory_is_that_of_the_benchmark(place: Path) -> None:
    values, _ = samples(of_asv(place, "suite.PeakMemSuite.peakmem_hold"), place / "old", 1)
    assert 20e6 < values[0] < 100e6


@pytest.mark.parametrize(
    ("name", "raised"),
    [
        ("suite.Refuses.time_pair(param1=1, param2=None)", BenchmarkSkipped),
        ("suite.Refuses.time_pair(param1=1, param2='a')", None),
        ("suite.Broken.time_broken", BenchmarkFailed),
        ("suite.time_gone", BenchmarkFailed),
        ("suite.timeraw_import", None),
        ("suite.Cached.time_with_cache", None),
        pytest.param("test_solve", None, marks=pytest.mark.slow),
        ("test_skipped", BenchmarkSkipped),
        pytest.param("test_wrong_fixture", BenchmarkFailed, marks=pytest.mark.slow),
        ("test_wrong_answer", BenchmarkFailed),
    ],
)
def test_a_trial_finds_what_is_skipped_and_what_fails(
    place: Path, name: str, raised: type[BenchmarkFailed] | None
) -> None:
    member = of_asv(place, name) if name.startswith("suite.") else of_pytest(place, name)
    if raised is None:
        assert asked("try", member, place / "old").from_side
        return
    with pytest.raises(BenchmarkFailed) as found:
        asked("try", member, place / "old")
    assert (found.type, found.value.code) == (raised, "E_BENCHMARK")
    assert len(str(found.value).splitlines()) == 1


def test_modules_that_cannot_be_imported_are_named_and_the_others_are_listed(tmp_path: Path) -> None:
    folder = asv_folder(project(tmp_path))
    (folder / "lost.py").write_text("import no_such_module\n")
    (folder / "ends.py").write_text("raise SystemExit('not here')\n")
    found = asked("list", Member(ASV, str(folder)), tmp_path)
    assert sorted(each.name for each in found.broken) == ["ends", "lost"]
    assert len(found.found) == len(ASV_NAMES)


def test_what_would_be_the_same_on_both_sides_is_refused(tmp_path: Path) -> None:
    folder = asv_folder(project(tmp_path))
    (folder / "alone.py").write_text("def time_alone():\n    sum(range(10))\n")
    found = asked("try", of_asv(tmp_path, "alone.time_alone", "benchmarks.alone"), tmp_path)
    with pytest.raises(BenchmarkFailed):
        require_from_side(found, str(tmp_path))


DEADLY = "import os, time, hot\ndef time_dies():\n    os.abort()\ndef time_hangs():\n    time.sleep(60)\n"


def test_a_benchmark_that_dies_or_hangs_is_one_failure(tmp_path: Path) -> None:
    folder = asv_folder(project(tmp_path))
    (folder / "deadly.py").write_text(DEADLY + "time_hangs.timeout = 0.5\ntime_hangs.number = 1\n")
    with pytest.raises(BenchmarkFailed, match="SIGABRT"):
        asked("try", of_asv(tmp_path, "deadly.time_dies", "benchmarks.deadly"), tmp_path)
    with (
        BenchmarkProcess("try", of_asv(tmp_path, "deadly.time_hangs", "benchmarks.deadly"), str(tmp_path)) as process,
        pytest.raises(BenchmarkFailed, match=re.escape("0.5 s")),
    ):
        process.reply(0.5)
    assert not os.path.exists(f"/proc/{process.pid}")  # noqa: PTH110


def test_what_a_benchmark_prints_is_not_taken_for_a_reply(tmp_path: Path) -> None:
    folder = asv_folder(project(tmp_path))
    printing = "print('{\"value\": 1}', flush=True)"
    (folder / "loud.py").write_text(f"import hot\ndef track_loud():\n    {printing}\n    return 5\n")
    values, _ = samples(of_asv(tmp_path, "loud.track_loud", "benchmarks.loud"), tmp_path, 2)
    assert values == [5, 5]
    for value in ("0", "float('nan')", "-1", "'text'"):
        (folder / "loud.py").write_text(f"import hot\ndef track_loud():\n    return {value}\n")
        with pytest.raises(BenchmarkFailed):
            asked("try", of_asv(tmp_path, "loud.track_loud", "benchmarks.loud"), tmp_path)
