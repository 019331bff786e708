"""Races of solvers agree with loops by hand, and solvers that do other work are named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import pytest
from command_line import output
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.processes.block_worker import CONTROLLED_MEMORY
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Seconds
from fairlap.scenarios.process_result import ProcessResult
from installed_package import install_frameworks
from small_races import run_race

pytestmark = [pytest.mark.slow, pytest.mark.sanitized, pytest.mark.timeout(600)]

BY_HAND = Path(__file__).parents[1] / "support/solves_by_hand.py"
TOLERANCES = ("1e-04", "1e-06", "1e-08")
_WITHIN = 0.10  # of quick solves, on a machine that does other things too


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def raced(
    on: str, problem: str = "lorenz", error: str = "1e-4", tolerances: tuple[str, ...] = TOLERANCES, **options: Any
) -> tuple[dict[str, ProcessResult], dict[str, Any]]:
    """Return the processes of one block, and their samples, by contestant."""
    usual: dict[str, Any] = {"mode": "solve", "blocks": 1, "threads": 1, "seed": 1, "data_seed": 0}
    request = RaceRequest(
        models=(problem,),
        contestants=Contestants(on),
        seconds=Seconds(0.2),
        scenario_settings={"error": error, "tolerances": ",".join(tolerances)},
        **{**usual, **options},
    )
    samples: dict[str, Any] = {}
    race = run_race(plan_of(request), keep=lambda process, found: samples.update({process.contestant: found}))
    return {process.contestant: process for process in race.processes}, samples


@pytest.mark.thorough
def test_solves_take_as_long_as_in_a_loop_by_hand() -> None:
    """On a quiet machine."""
    apart = []
    for _ in range(3):
        processes, samples = raced("scipy:LSODA,scipy:DOP853")
        for name, process in processes.items():
            assert process.outcome == "finished", process.message
            by_hand = subprocess.run(
                ["taskset", "-c", "0", sys.executable, str(BY_HAND), name.partition(":")[2], *TOLERANCES],
                env={**os.environ, **CONTROLLED_MEMORY, "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                check=True,
            )
            quick_ns = {
                text: float(np.quantile(samples[name][f"solve-{float(text):g}/wall_ns"], 0.1)) for text in TOLERANCES
            }
            apart.append(max(abs(quick_ns[text] / ns - 1) for text, ns in json.loads(by_hand.stdout).items()))
            curve = process.work_precision
            assert curve is not None
            for point in curve.points:
                assert point.p50_ns == pytest.approx(np.median(samples[name][f"solve-{point.tolerance:g}/wall_ns"]))
            assert curve.errors == sorted(curve.errors, reverse=True)
            assert curve.time_ns is not None
    assert min(apart) < _WITHIN, apart


def test_a_solver_that_does_other_work_is_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_frameworks(tmp_path / "package", monkeypatch, {"wrong": "wrong_solvers:WrongSolver"})
    processes, _ = raced("wrong,wrong:other-equations,wrong:kept,wrong:no-rates")
    outcomes = {name: (process.outcome, process.code) for name, process in processes.items()}
    assert outcomes == {
        "wrong": ("finished", ""),
        "wrong:other-equations": ("disqualified", "E_OUTPUT"),
        "wrong:kept": ("disqualified", "E_STALE_ANSWER"),
        "wrong:no-rates": ("disqualified", "E_OUTPUT"),
    }


@pytest.mark.parametrize(
    "problem", ["arenstorf", "brusselator_2d", "heat_2d", "neural_ode", "robertson", "three_bodies", "van_der_pol"]
)
def test_every_problem_comes_to_the_error_with_scipy(problem: str) -> None:
    processes, _ = raced("scipy", problem, "1e-5", ("1e-2", "1e-4", "1e-06", "1e-08", "1e-10", "1e-12"))
    curve = processes["scipy"].work_precision
    assert processes["scipy"].outcome == "finished", processes["scipy"].message
    assert curve is not None
    assert curve.time_ns is not None
    assert min(curve.errors) < 1e-6


@pytest.mark.parametrize(
    ("library", "module"),
    [
        ("diffrax", "diffrax"),
        ("torchdiffeq", "torchdiffeq"),
        ("tensorflow-probability", "tensorflow_probability"),
        ("tensorflow-probability:execution=xla", "tensorflow_probability"),
    ],
)
def test_a_library_solves_single_items_and_batches(library: str, module: str) -> None:
    pytest.importorskip(module, reason="`make test-slow` installs it and runs this")
    for batch in (1, 3):
        processes, _ = raced(library, batch=batch)
        process = processes[library]
        assert process.outcome == "finished", process.message
        assert process.in_force["precision"] == "fp64"
        curve = process.work_precision
        assert curve is not None
        assert curve.time_ns is not None
        assert curve.errors == sorted(curve.errors, reverse=True)
        assert all(point.steps and point.steps > 10 for point in curve.points)


@pytest.mark.parametrize(
    ("library", "way", "smallest"),
    [
        ("diffrax", "direct", 1e-7),
        ("diffrax", "adjoint", 1e-7),
        ("torchdiffeq", "direct", 1e-7),
        ("torchdiffeq", "adjoint", 1e-7),
        ("tensorflow-probability", "adjoint", 3e-7),  # its coefficients are rounded to single precision
    ],
)
def test_gradients_through_a_library_come_to_those_of_the_reference(library: str, way: str, smallest: float) -> None:
    """By the initial values and by the weights, of single items and of batches."""
    pytest.importorskip(library.replace("-", "_"), reason="`make test-slow` installs it and runs this")
    name = f"{library}:gradient={way}"
    for batch in (1, 3):
        processes, _ = raced(name, "neural_ode", "1e-6", ("1e-4", "1e-6", "1e-9"), mode="solve-grad", batch=batch)
        process = processes[name]
        assert process.outcome == "finished", process.message
        assert process.in_force["gradient"] == way
        curve = process.work_precision
        assert curve is not None
        assert curve.errors == sorted(curve.errors, reverse=True)
        assert curve.errors[-1] < smallest
        assert curve.time_ns is not None
        assert all(point.steps and point.steps > 3 for point in curve.points)


def test_a_library_without_gradients_says_so() -> None:
    processes, _ = raced("scipy", "neural_ode", mode="solve-grad")
    assert (processes["scipy"].outcome, processes["scipy"].work_precision) == ("unsupported", None)


def test_diffrax_takes_its_stiff_solver_where_a_problem_is_stiff() -> None:
    pytest.importorskip("diffrax", reason="`make test-slow` installs it and runs this")
    processes, _ = raced("diffrax", "robertson", "1e-8", ("1e-4", "1e-6", "1e-8"))
    assert processes["diffrax"].in_force["solver"] == "Kvaerno5"
    curve = processes["diffrax"].work_precision
    assert curve is not None
    assert curve.time_ns is not None


def test_tensorflow_probability_takes_bdf_where_a_problem_is_stiff_and_says_what_rounds_its_other_solver() -> None:
    pytest.importorskip("tensorflow_probability", reason="`make test-slow` installs it and runs this")
    processes, _ = raced("tensorflow-probability", "van_der_pol", "1e-6", ("1e-4", "1e-6", "1e-8"))
    in_force, curve = processes["tensorflow-probability"].in_force, processes["tensorflow-probability"].work_precision
    assert (in_force["solver"], in_force["execution"]) == ("BDF", "graph")
    assert "coefficients" not in in_force
    assert curve is not None
    assert curve.time_ns is not None
    assert curve.errors[-1] < 1e-7
    processes, _ = raced("tensorflow-probability", error="1e-3")
    assert processes["tensorflow-probability"].in_force["coefficients"] == "rounded to fp32"


def test_the_command_of_the_page_prints_a_ranking_and_draws_a_picture(tmp_path: Path) -> None:
    words = ("lorenz", "--on", "scipy:LSODA,scipy:RK45", "--mode", "solve", "--error", "1e-4", "--blocks", "1")
    few = ("--tolerances", "1e-4,1e-6,1e-8", "--seconds", "0.1")
    shown = output("compare", *words, *few, "-o", tmp_path / "lorenz.json")
    assert "time to an error of 0.0001" in shown
    output("report", tmp_path / "lorenz.json", "--charts", tmp_path / "pictures")
    [picture] = (tmp_path / "pictures").glob("*scenario-work-precision.svg")
    assert picture.read_text().count('aria-roledescription="point"') >= 6


def test_every_solver_of_the_page_s_stiff_command_comes_to_its_error() -> None:
    pytest.importorskip("diffrax", reason="`make test-slow` installs it and runs this")
    page = Path(__file__).parents[2] / "docs" / "how-to" / "solve-differential-equations.md"
    [(on, error)] = re.findall(r"compare robertson --on (\S+) --mode solve --error (\S+)", page.read_text())
    processes, _ = raced(on, "robertson", error, ("1e-3", "1e-5", "1e-7", "1e-9"))
    curves = {name: process.work_precision for name, process in processes.items()}
    assert {name: curve is not None and curve.time_ns is not None for name, curve in curves.items()} == dict.fromkeys(
        on.split(","), True
    )


def test_rows_say_what_they_were_ranked_by() -> None:
    results = fairlap.compare(
        "lorenz",
        on=["scipy:LSODA"],
        mode="solve",
        scenario_settings={"error": "1e-4", "tolerances": "1e-4,1e-6,1e-8"},
        blocks=1,
        seconds=0.05,
    )
    [row] = results.rows
    assert row.judged_by == "time to an error of 0.0001"
    assert {"steps_to_error", "evaluations_to_error", "smallest_error"} <= set(row.scenario_figures)
    assert (row.mode, row.precision) == ("solve", "fp64")
