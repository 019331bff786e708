"""Every JSON document names its schema, follows it, and the published schemas are those of the code."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from command_line import fairlap, here, invoke
from fairlap.cli import cli
from fairlap.cli.races.self_test_trials import SelfTestDocument, TrialVerdict
from fairlap.cli.schemas import DOCUMENTS, file_name, schema_name, write_schemas
from fairlap.explanations import explanations, next_step
from fairlap.machine.hardware import roofs
from fairlap.machine.hardware.roofs import Roof, Roofs
from fairlap.printed_document import PrintedDocument, error_document
from fairlap.race.self_test import Trial as SelfTest
from fairlap.request.names import contestant_named
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios.collectives.race import collectives_run as collectives
from fairlap.scenarios.collectives.race.collectives_run import CollectivesPlan, CollectivesRun, Trial
from fairlap.stability import trials
from fairlap.stability.table import Repeated, StabilityRow
from fairlap.store.runs.run_file import save_run
from fairlap.store.shared.sending import Carried, CarriedRuns
from fairlap.store.store import open_store
from fairlap.sweep.summary import RunDocument, SweepDocument
from measured_runs import store_measured_run
from published_schemas import FOLDER, checked
from runs_in_store import a_run_with_everything, keep_whole

TINY_RACE = ("callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--threads", 1, "--seconds", "20ms")
SEVERAL = ("time", "os:getpid", "os:getppid", "--any-answers", "--seconds", "2ms")

# What each command prints, its schema, and its exit statuses.
PRINTED = [
    (("compare", *TINY_RACE, "--blocks", 2, "--dry-run"), "fairlap.plan/2", {0}),
    (("show", "last"), "fairlap.run/4", {0}),
    (("show", "last", "--require", "latency_p99<1h", "--price", "1/h"), "fairlap.run/4", {0}),
    (("time", "os:getpid", "--samples", 20, "--raw"), "fairlap.measurement/1", {0}),
    (("time", "os:getpid", "--samples", 2), "fairlap.measurement/1", {0}),
    ((*SEVERAL, "--blocks", 6, "--raw"), "fairlap.comparison/1", {0}),
    ((*SEVERAL, "--blocks", 2), "fairlap.comparison/1", {0}),
    (
        ("time", "os:getpid", "os:getppid", "--any-answers", "--blocks", 2, "--seconds", "2ms"),
        "fairlap.comparison/1",
        {0},
    ),
    (("sweep", "small.toml", "--dry-run"), "fairlap.plans/1", {0}),
    (("list", "models"), "fairlap.models/1", {0}),
    (("list", "operations", "gemm-m5124-n700-k2048"), "fairlap.operations/1", {0}),
    (("list", "data"), "fairlap.data-sets/1", {0}),
    (("list", "frameworks"), "fairlap.frameworks/1", {0}),
    (("list", "devices"), "fairlap.devices/1", {0}),
    (("list", "prices"), "fairlap.prices/1", {0}),
    (("envs",), "fairlap.environments/1", {0}),
    (("doctor", "--seconds", "50ms"), "fairlap.doctor/1", {0, 1, 2}),
    (("floor",), "fairlap.floor/1", {0}),
    (("roofs", "--threads", 1), "fairlap.roofs/1", {0}),
    (("collectives", "--on", "mpi", "--sizes", "4KB,1MB", "--seed", 7), "fairlap.collectives/1", {1}),
    (("stability", "softmax", "--on", "onnxruntime", "--seed", 7), "fairlap.stability/1", {0}),
    (("mistakes", "missing_axis", "--on", "numpy"), "fairlap.mistakes/1", {0}),
    (("explain",), "fairlap.codes/1", {0}),
    (("explain", "E_OUTPUT"), "fairlap.code/1", {0}),
    (("runs",), "fairlap.runs/1", {0}),
    (("history", "mlp"), "fairlap.history/1", {0}),
    (("stale",), "fairlap.stale/1", {0, 1}),
    (("diff", "before.json", "last"), "fairlap.diff/1", {0}),
    (("diff", "last", "last"), "fairlap.diff/1", {1}),
    (("across", "before.json", "last", "--price", "1/h"), "fairlap.across/1", {0}),
    (("across", "last", "--require", "latency_p99<1h"), "fairlap.across/1", {0}),
    (("gate", "last", "--baseline", "torch"), "fairlap.gate/1", {0, 1, 3}),
    (("export", "last"), "fairlap.rows/1", {0}),
    (("bundle", "last", "--no-page", "-o", "made.fairlap"), "fairlap.bundle/1", {0}),
    (("verify", "kept.fairlap"), "fairlap.verification/1", {0, 3}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With a store of two runs, one of which has everything that a run may have, and files."""
    made = tmp_path_factory.mktemp("schemas")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FAIRLAP_STORE", str(made / "runs.sqlite"))
        patched.chdir(made)
        everything = a_run_with_everything()
        everything.began_at = "2026-01-01T00:00:00+00:00"  # before the other, which is the last
        save_run(made / "before.json", everything)
        with open_store() as store:
            keep_whole(store, everything)
        store_measured_run()
        words = [f'"{each}"' for each in TINY_RACE[2].split(",")]
        (made / "small.toml").write_text(
            f'models = ["callable"]\ncontestants = [{", ".join(words)}]\nblocks = 2\nthreads = 1\nseconds = 0.02\n'
        )
        assert invoke("bundle", "last", "--no-page", "-o", "kept.fairlap").exit_code == 0
        yield made


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what takes long, the measured values are given."""
    roof = Roof(200e9, 199e9, 201e9)
    kept = Roofs(1, {"fp32": roof}, {"memory": roof}, {"L1": 49152}, {"fp32": "avx512f"}, "2026-11-23T05:00:00+00:00")

    def exchanged(_on: object, plan: CollectivesPlan, _report: object) -> CollectivesRun:
        trials = [
            Trial(name, "all_reduce", size, block, 1e4 + size) for size in plan.sizes for block in range(plan.blocks)
            for name in ("mpi", "torch")
        ]  # fmt: skip
        return CollectivesRun(plan, trials, {"jax": "ended"}, {"jax": "E_RANK"}, {"mpi": "4"}, {})

    row = StabilityRow(
        contestant="onnxruntime", work="softmax", model="softmax", precision="fp32", batch=8, again=Repeated(True, 0, 9)
    )
    monkeypatch.setattr(trials, "stability_rows", lambda _plan, _report: (row,))
    monkeypatch.setattr(roofs, "kept_roofs", lambda _threads: kept)
    monkeypatch.setattr(collectives, "run_collectives", exchanged)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})


@pytest.mark.parametrize(("arguments", "schema", "statuses"), PRINTED, ids=lambda value: str(value)[:60])
def test_what_a_command_prints_follows_its_schema(
    arguments: tuple[object, ...], schema: str, statuses: set[int], folder: Path
) -> None:
    done = invoke(*arguments, "--json")
    assert done.exit_code in statuses, done.output
    assert checked(done.stdout)["schema"] == schema


@pytest.mark.slow
def test_a_race_and_a_watch_follow_their_schemas(folder: Path) -> None:
    for arguments, schema in (
        (("compare", *TINY_RACE, "--blocks", 2, "-q", "-o", "race.json"), "fairlap.run/4"),
        (("rerun", "race.json", "-q", "--no-store", "--trust"), "fairlap.run/4"),
        (("watch", "--once", "--interval", 0.2), "fairlap.readings/1"),
    ):
        done = fairlap(*arguments, "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert checked(done.stdout)["schema"] == schema
    assert checked((folder / "race.json").read_text())["schema"] == "fairlap.run/4"


def test_documents_of_commands_that_need_more_than_one_machine_or_many_races_follow_their_schemas() -> None:
    trial = SelfTest(contestant_named("torch"), Work("mlp", 2), 1, (0,))
    interval = (0.9, float("inf"))
    rows = list(results_of(a_run_with_everything(), "r").rows)
    run = RunDocument("r", "small", "cpu", (0,), {"host": 2}, 2, 2, 0, "", rows)
    for document in (
        SelfTestDocument(trial, 1, True, [TrialVerdict("inconclusive", 1.0, interval, 3, float("inf"))]),
        SweepDocument("s", "alike", "finished", {"node": "too few cores"}, [run]),
        CarriedRuns([Carried("r", "failed", code="E_STORE", message="away")]),
    ):
        checked(msgspec.json.encode(document).decode())


def test_an_error_has_its_code_the_message_and_what_to_do() -> None:
    done = here("compare", "mlp", "--on", "torch", "--batch", "0", "--json")
    assert done.returncode == 2
    error = checked(done.stdout)["error"]
    assert error["code"] == "E_REQUEST"
    assert error["hint"]
    for code, explanation in explanations().items():
        assert error_document(code, "no model").error.hint == next_step(explanation) != ""


def test_the_published_schemas_are_those_of_the_code(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == {
        path.name: path.read_text() for path in tmp_path.iterdir()
    }
    for path in tmp_path.iterdir():
        jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_every_document_has_a_schema_of_its_own() -> None:
    documents = list(DOCUMENTS.values())
    own = {each for each in PrintedDocument.__subclasses__() if each.__module__.startswith("fairlap.")}
    assert own <= set(documents)
    assert len({file_name(each) for each in documents}) == len(documents)
    for each in documents:
        assert schema_name(each).startswith("fairlap.")
        assert schema_name(each).rpartition("/")[2].isdigit()


def test_every_command_with_json_is_listed() -> None:
    listed = {words.partition(" --")[0].strip() for named in DOCUMENTS for words in named.split(",")}
    assert {each for each in with_json(cli, ()) if not any(words.startswith(each) for words in listed)} == set()


def with_json(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
    if words and any("--json" in each.opts for each in command.params):
        yield " ".join(words)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from with_json(found, (*words, name))
