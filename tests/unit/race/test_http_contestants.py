"""A server in a race: its answers prove its work, its faults are its own row's, and nothing unknown is called equal."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from fairlap.frameworks.registry import framework_named
from fairlap.launch.runners import requirements_of
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.planning.plan import Limits, Measuring
from fairlap.race.run import Run
from fairlap.request.names import contestant_named
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.worker.serving import over_http
from grpc_model_server import GrpcModelServer
from machine_marks import needs_proc
from model_servers import ModelServer, serving
from small_races import run_race, small_plan

pytestmark = [pytest.mark.sanitized, needs_proc, pytest.mark.usefixtures("example")]
WORK = Work("mlp", 2)
LIMITS = Limits(start_s=60, prepare_s=60, answer_s=60, measure_s=60)


def server(**more: Any) -> ModelServer:
    return serving("mlp", materials_for(WORK, 0), **more)


def run_of(contestants: str) -> Run:
    plan = small_plan(contestants, WORK, measuring=Measuring(seconds=0.05), limits=LIMITS)
    race = run_race(plan)
    return Run(plan, race.processes, {}, race.shares())


def test_a_server_is_ranked_by_its_answers_and_what_is_not_known_of_it_is_said() -> None:
    with server() as model:
        run = run_of(f"example,{model.v2}")
        rows = {row.contestant: row for row in results_of(run, "run").rows}
        row = rows[model.v2]
    process = next(each for each in run.processes if each.contestant == model.v2)
    assert process.outcome == "finished", process.message
    assert {error.when for error in process.errors} == {"before", "changed inputs", "timed call", "after"}
    assert process.work_in == "other_server"
    assert process.in_force["threads"].startswith("unknown")
    assert process.in_force["precision"].startswith("unknown")
    assert "weights" in process.in_force
    assert row.version == "test server 3"
    for each in rows.values():
        assert "W_UNKNOWN_SETTINGS" in {warning.code for warning in each.warnings}
    for column in ("cpu_busy_share", "peak_memory_bytes", "energy_per_item_j", "overhead_ns"):
        assert getattr(row, column) is None
        assert row.absent[column]
    assert not {"W_LITTLE_CPU_TIME", "W_OTHER_PROCESSES"} & {warning.code for warning in row.warnings}


@pytest.mark.slow
def test_a_server_by_grpc_is_ranked_by_its_answers_and_disqualified_by_wrong_ones() -> None:
    pytest.importorskip("grpc", reason="needs the extra grpc; `make test` installs it and runs this")
    with GrpcModelServer(server()) as model, GrpcModelServer(server(), fault="values") as wrong:
        run = run_of(f"example,{model.address},{wrong.address}")
    by_name = {each.contestant: each for each in run.processes}
    process = by_name[model.address]
    assert process.outcome == "finished", process.message
    assert {error.when for error in process.errors} == {"before", "changed inputs", "timed call", "after"}
    assert "gRPC" in process.in_force["protocol"]
    assert process.version == "test server 3"
    assert (by_name[wrong.address].outcome, by_name[wrong.address].code) == ("disqualified", "E_OUTPUT")


WRONG = {
    "values": ("disqualified", "E_OUTPUT"),
    "NaN": ("disqualified", "E_OUTPUT"),
    "shape": ("disqualified", "E_OUTPUT"),
    "dies": ("failed", "E_SERVER"),
    "hangs": ("failed", "E_SERVER"),
    "nobody": ("failed", "E_SERVER"),
    "other model": ("unsupported", "E_UNSUPPORTED"),
}


@pytest.mark.slow
def test_servers_that_go_wrong_end_their_own_rows_alone_each_in_one_line_with_a_code() -> None:
    with ExitStack() as stack:
        servers = {fault: stack.enter_context(server(fault=fault, fault_from=12)) for fault in WRONG}
        servers["other model"].inputs = {"tokens": ("int64", (-1, 16))}
        servers["nobody"].die()
        urls = {fault: f"{model.v2}:timeout={'2s' if fault == 'hangs' else '60s'}" for fault, model in servers.items()}
        processes = {each.contestant: each for each in run_of(",".join(["example", *urls.values()])).processes}
        found = {fault: processes[url] for fault, url in urls.items()}
    assert processes["example"].outcome == "finished", processes["example"].message
    assert {fault: (each.outcome, each.code) for fault, each in found.items()} == WRONG
    assert all(len(each.message.splitlines()) == 1 for each in found.values())
    assert servers["other model"].inferences == 0


def test_a_server_that_answers_with_what_it_kept_is_found() -> None:
    with server() as model:
        forward, kept = model.forward, {}

        def cached(inputs: Any) -> Any:
            key = b"".join(array.tobytes() for array in inputs.values())
            if key not in kept:
                model.over.wait(0.05)
                kept[key] = forward(inputs)
            return kept[key]

        model.forward = cached
        [process] = run_of(model.v2).processes
    assert (process.outcome, process.code) == ("disqualified", "E_KEPT_ANSWERS"), process.message


@pytest.mark.slow
def test_the_cost_of_serving_is_the_difference_of_two_rows_and_other_weights_are_found_behind_a_server() -> None:
    run = run_of("example,example:over=http,example:other-weights:over=http")
    processes = {each.contestant: each for each in run.processes}
    served, wrong = processes["example:over=http"], processes["example:other-weights:over=http"]
    assert processes["example"].outcome == served.outcome == "finished", served.message
    assert served.headline_quantity == processes["example"].headline_quantity
    assert (served.version, served.in_force["threads"]) == (processes["example"].version, "1")
    assert (wrong.outcome, wrong.code) == ("disqualified", "E_WEIGHTS")
    rows = {row.contestant: row for row in results_of(run, "run").rows}
    row = rows["example:over=http"]
    assert row.framework == "example"
    assert row.settings["over"] == "http"
    assert row.memory_bytes["children_peak"] > 0
    assert row.absent["cpu_busy_share"]
    assert not {"W_LITTLE_CPU_TIME", "W_OTHER_PROCESSES", "W_UNKNOWN_SETTINGS"} & {each.code for each in row.warnings}


def test_without_fastapi_the_contestant_is_not_installed_and_an_environment_of_its_own_gets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(over_http, "SERVER_MODULES", ("no_such_server",))
    [process] = run_of("example:over=http").processes
    assert (process.outcome, process.code) == ("not_installed", "E_NOT_INSTALLED")
    name = contestant_named("torch==2.12.0:over=http")
    assert set(over_http.SERVER_PACKAGES) < set(requirements_of(name, framework_named("torch")))
