"""Load on contestants behind HTTP: each serving thread has a connection.

A server that goes wrong in the middle of a load ends its own row in one line, with what was measured.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.planning.plan import Limits, Measuring
from fairlap.request.fields.load import Load, LoadRequest
from fairlap.request.names import Contestants
from fairlap.request.units import Seconds
from fairlap.request.work import Work
from fairlap.scenarios.load.race import load_run
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from model_servers import ModelServer, serving
from runs_of_precisions import planned
from served_framework import CALL_S, install_served
from small_races import run_race, small_plan

pytestmark = needs_proc

WORK = Work("mlp", 1, load=Load(0.9, 0.1, workers=2, trial_s=0.1))
IN_LOAD = 20  # inferences after the second connection, which is that of the second serving thread


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def raced(contestants: str, load: Load | None = WORK.load) -> dict[str, ProcessResult]:
    plan = small_plan(
        contestants,
        Work("mlp", 1, load=load),
        measuring=Measuring(seconds=0.04, rounds=2),
        limits=Limits(start_s=60, prepare_s=60, answer_s=30, measure_s=60),
    )
    return {process.contestant: process for process in run_race(plan).processes}


def server(fault: str = "", slow_s: float = 0.0) -> ModelServer:
    """Goes wrong once several threads ask."""
    model = serving("mlp", materials_for(WORK, 0))
    forward, asked = model.forward, iter(range(10**9))

    def counted(inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        if model.connections > 1 and next(asked) > IN_LOAD:
            model.fault = fault
            time.sleep(slow_s)
        return forward(inputs)

    model.forward = counted
    return model


@pytest.mark.slow
def test_every_serving_thread_has_a_connection_and_the_largest_rate_is_found() -> None:
    with server() as model:
        [process] = raced(model.v2).values()
        assert model.connections == 2
    assert process.outcome == "finished", process.message
    assert process.load is not None
    assert process.load.largest_rate_per_s
    errors = [error for error in process.errors if error.when == load_run.WHEN]
    assert errors
    assert all(error.right for error in errors)


FAULTS = {
    "dies": ("failed", "E_SERVER"),
    "hangs": ("failed", "E_SERVER"),
    "closes": ("failed", "E_SERVER"),
    "plain status": ("failed", "E_SERVER"),
    "values": ("disqualified", "E_OUTPUT"),
}


@pytest.mark.slow
def test_servers_that_go_wrong_in_a_load_end_their_own_rows_with_what_was_measured() -> None:
    with ExitStack() as stack:
        servers = {fault: stack.enter_context(server(fault)) for fault in FAULTS}
        urls = {fault: f"{model.v2}:timeout={'2s' if fault == 'hangs' else '60s'}" for fault, model in servers.items()}
        processes = raced(",".join(urls.values()))
    found = {fault: processes[url] for fault, url in urls.items()}
    assert {fault: (each.outcome, each.code) for fault, each in found.items()} == FAULTS
    assert all(len(each.message.splitlines()) == 1 for each in found.values())
    assert "503" in found["plain status"].message
    assert found["values"].load is not None
    assert found["values"].load.trials


@pytest.mark.slow
def test_a_server_that_becomes_slow_finds_a_lower_rate_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_run, "_GIVE_UP_S", 0.3)
    monkeypatch.setattr(load_run, "_GIVE_UP_TRIALS", 1.0)
    with server() as fast, server(slow_s=0.03) as slow:
        processes = raced(f"{fast.v2},{slow.v2}")
    rates = [processes[model.v2].load for model in (fast, slow)]
    found = [0.0 if each is None else each.largest_rate_per_s or 0.0 for each in rates]
    assert processes[slow.v2].outcome == "finished", processes[slow.v2].message
    assert found[1] < found[0] / 2
    slow_load = processes[slow.v2].load
    assert slow_load is not None
    assert any(trial.pending for trial in slow_load.trials)  # the worker gave up, and nothing was dropped


@pytest.mark.slow
def test_the_cost_of_serving_is_the_ratio_of_two_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_served(tmp_path / "installed", monkeypatch)
    processes = raced("served,served:over=http")
    rates = {}
    for name, process in processes.items():
        assert process.outcome == "finished", process.message
        assert process.load is not None
        rates[name] = process.load.largest_rate_per_s or 0.0
        assert process.phases_s["build"] < 30
    assert processes["served:over=http"].work_in == "own_server"
    # Two threads in one process serve two requests at once, and the server one after the other.
    assert 0 < rates["served:over=http"] < 1 / CALL_S[""] < 1.9 * rates["served"]


def test_batches_are_not_sent_to_a_server_of_single_requests() -> None:
    load: Any = LoadRequest(p99=Seconds(1), largest_batch=4)
    with pytest.raises(InvalidRequest) as refused:
        planned(contestants=Contestants("torch:over=http"), load=load)
    assert refused.value.code == "E_LOAD"
