"""The protocol is not Python's: a C++ program races against a Python worker."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from example_installed import install_example
from fairlap.race.naming import contestants_named
from fairlap.race.plan import Measuring, Work, draw_plan
from fairlap.race.race import Race

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler"),
]


def test_a_cpp_worker_races_against_a_python_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    program = tmp_path / "cpp-worker"
    source = Path(__file__).parent / "cpp_worker" / "worker.cpp"
    subprocess.run(["c++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", source, "-o", program], check=True)
    plan = draw_plan(
        contestants_named(f"{program},example"),
        (Work("example_model", 2),),
        blocks=2,
        conditions="as-found",
        threads=1,
        available_cores=(0,),
        seed=1,
        measuring=Measuring(seconds=0.1),
    )
    race = Race(plan)
    race.run()
    assert [lap.outcome for lap in race.laps] == ["finished"] * 4, [lap.message for lap in race.laps]
    of_program = [lap for lap in race.laps if lap.contestant == str(program)]
    assert all(lap.figures["wall_ns"].method == "std::chrono::steady_clock" for lap in of_program)
    assert all(len(lap.errors) == 3 for lap in of_program)
    assert "kept" in of_program[0].last_words
