"""The commands on the store: what they print, and one or two lines for every error."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import msgspec
import pytest
from command_line import error_code, fairlap, invoke, output, refusal
from fairlap.cli.commands.rerun import _changes, _no_change
from fairlap.engine.measurement import Notice
from fairlap.explanations import paragraphs_of_a_claim
from fairlap.machine.facts import machine_facts
from fairlap.race.run import Run
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.source import Source
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.runs.run_file import save_run
from fairlap.store.store import open_store
from runs_at_scales import a_run as run_at_scales
from runs_at_scales import threads
from runs_for_rows import a_run, crashed
from runs_in_store import keep_whole, recording_of


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    return tmp_path / "runs.sqlite"


def kept(run: Run | None = None) -> str:
    with open_store() as store:
        return keep_whole(store, run or a_run())


def test_without_a_store_the_list_says_where_it_will_lie_and_makes_none(path: Path) -> None:
    assert str(path) in output("runs")
    assert json.loads(output("runs", "--json"))["runs"] == []
    for words in (["show", "last"], ["diff", "a", "b"]):
        error = refusal(*words)
        assert (error.code, str(path) in str(error)) == ("E_NO_RUN", True)
    assert not path.exists()


def test_the_list_has_a_line_for_each_run_with_the_places() -> None:
    run_id = kept()
    assert output("runs") == (
        f"{run_id}  2026-01-02 03:04  finished     16 processes      mlp · infer · fp32 · batch 4: 1 jax:fast, "
        "2 torch 2.00×\n"
    )
    with open_store() as store:
        recording = recording_of(store, a_run(), processes=3)
    listed = {line.split()[0]: line for line in output("runs", "--model", "mlp", "--on", "torch").splitlines()}
    assert "running      3 of 16 processes  mlp · infer · fp32 · batch 4: torch, jax:fast" in listed[recording.run]
    assert len(output("runs", "--limit", "1").splitlines()) == 1
    assert "no such run in" in output("runs", "--since", "2026-01-03")
    assert run_id in output("runs", "--since", "2026-01-02T05:04:05+02:00")
    assert {each["run"] for each in json.loads(output("runs", "--json"))["runs"]} == {run_id, recording.run}


def test_the_list_says_what_a_race_was_fed_also_while_it_runs_and_bears_a_plan_that_cannot_be_read() -> None:
    run = a_run()
    run.plan = msgspec.structs.replace(run.plan, data="synthetic")
    run_id = kept(run)
    with open_store() as store:
        recording_of(store, run, processes=3)
        lines = output("runs").splitlines()
    assert len(lines) == 2
    assert all("mlp · infer · fp32 · batch 4 · fed synthetic: " in line for line in lines)
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE runs SET plan = '{' WHERE id = ?", (run_id,))
    assert f"{run_id}  " in output("runs")


@pytest.mark.slow
def test_a_store_that_cannot_be_opened_is_no_empty_list(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = fairlap("runs", FAIRLAP_STORE=tmp_path / "file" / "runs.sqlite")
    assert (done.returncode, done.stdout) == (2, "")
    assert error_code(done) == "E_STORE"


def test_a_date_that_is_none_is_refused() -> None:
    result = invoke("runs", "--since", "yesterday")
    assert result.exit_code == 2
    assert "yesterday" in result.output


def test_a_kept_run_is_shown_as_the_race_ended_with_what_it_rests_on() -> None:
    run = a_run()
    crashed(run.processes[2])
    run.processes[2].details = "frame one\nframe two"
    run_id = kept(run)
    text = output("show", run_id[:12])
    assert f"run {run_id}: finished, 16 of 16 processes, began 2026-01-02T03:04:05+00:00" in text
    assert text_of(results_of(run)) in text
    assert "cpu model: Imaginary 9000" in text
    assert "torch (1.2.3): threads 2, precision fp32" in text
    assert "! the clock is coarse (similar in 8 processes) [W_" in text
    assert "frame two" not in text
    more = output("show", "last", "--errors")
    assert more.startswith(text.rstrip("\n"))
    assert "mlp · infer · fp32 · batch 4 · torch · logits: 1.0e-07 relative" in more
    assert "[E_CRASH]\n  | frame one\n  | frame two" in more


def test_a_run_is_shown_with_how_sure_its_verdict_is_and_what_would_refute_it() -> None:
    run_id = kept()
    lines = output("show", run_id).split("how sure this is\n")[1].splitlines()
    [found] = json.loads(output("show", run_id, "--json"))["work_results"][0]["comparisons"]
    assert found["p_adjusted"] == pytest.approx(2 / 2**8)  # eight blocks of one sign
    assert "p = 0.0078" in lines[0]
    assert "95 %" in lines[0]
    assert [line.strip() for line in lines[1:4]] == list(paragraphs_of_a_claim())
    assert len(paragraphs_of_a_claim()) == 3
    alone = output("show", kept(a_run(listed="torch")))
    assert "how sure this is" not in alone


@pytest.mark.slow
def test_settings_that_differ_between_scales_are_shown_for_each_scale() -> None:
    scales = threads(1, 2)
    run = run_at_scales(scales, dict.fromkeys(scales, 1.0))
    for process in run.processes:
        process.in_force |= {"precision": "fp32"}
    kept(run)
    lines = output("show", "last").splitlines()
    at = lines.index("torch (1.2.3): precision fp32")
    assert lines[at + 1 : at + 3] == ["  1 thread: threads 1", "  2 threads: threads 2"]


def test_warnings_that_differ_in_their_figures_only_are_one() -> None:
    run = a_run()
    for number, process in enumerate(run.processes):
        process.warnings = [Notice("W_PREEMPTED", f"the core was taken away {number} times")]
    kept(run)
    text = output("show", "last")
    assert text.count("the core was taken away") == 2
    assert text.count("(similar in 8 processes)") == 2


def test_a_run_without_a_process_is_shown_too() -> None:
    with open_store() as store:
        recording_of(store, a_run(), processes=0)
    assert "0 of 16 processes" in output("show", "last")
    assert "no answer was checked" in output("show", "last", "--errors")


def test_a_run_as_json_holds_plan_processes_and_rows() -> None:
    run_id = kept()
    shown = json.loads(output("show", "last", "--json"))
    assert (shown["id"], shown["state"], len(shown["processes"]), len(shown["rows"])) == (run_id, "finished", 16, 2)
    assert shown["samples"] == []


def test_runs_are_removed_by_name_all_or_none() -> None:
    one, other = kept(), kept()
    assert refusal("runs", "remove", one, "nothing").code == "E_NO_RUN"
    assert output("runs", "remove", one, one) == f"removed {one}\n"
    assert output("runs").split()[0] == other


def test_a_run_is_exported_and_taken_in_again(tmp_path: Path) -> None:
    run_id = kept()
    file = tmp_path / "run.json"
    assert output("runs", "export", "last", str(file)) == f"wrote {run_id} to {file}\n"
    assert refusal("runs", "import", file).code == "E_REQUEST"
    output("runs", "remove", "last")
    assert output("runs", "import", str(file)) == f"stored {run_id}\n"
    assert refusal("runs", "export", "last", tmp_path / "no" / "run.json").code == "E_FILE"
    assert refusal("runs", "import", tmp_path / "missing.json").code == "E_RUN_FILE"


def test_a_file_that_compare_wrote_is_taken_in(tmp_path: Path) -> None:
    save_run(tmp_path / "race.json", a_run())
    run_id = output("runs", "import", str(tmp_path / "race.json")).split()[-1]
    assert f"run {run_id}: finished" in output("show", run_id)


def test_repair_says_when_there_is_nothing_to_do_or_what_was_read(path: Path) -> None:
    assert refusal("runs", "repair").code == "E_NO_RUN"
    kept()
    assert "nothing to repair" in output("runs", "repair")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size - 4096)
        file.write(b"\xa5" * 4096)
    text = output("runs", "repair")
    assert "1 run with " in text
    assert " planned processes" in text
    assert f"the damaged file is now {path}.damaged-" in text


def test_repair_leaves_alone_what_it_can_read_no_run_in(path: Path) -> None:
    path.write_bytes(b"rubbish" * 1000)
    assert refusal("runs").code == "E_STORE_DAMAGED"
    assert refusal("runs", "repair").code == "E_STORE_DAMAGED"
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (id)")
    content = path.read_bytes()
    assert refusal("runs", "repair").code == "E_STORE"
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@pytest.fixture
def raced(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Collect the plans that would have been run."""
    plans: list[object] = []

    def run_race(plan: object, _output: object) -> int:
        plans.append(plan)
        return 0

    monkeypatch.setattr("fairlap.cli.races.run_race.run_race", run_race)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    return plans


def test_a_rerun_runs_the_same_plan_and_says_first_what_differs(raced: list[object]) -> None:
    run = a_run(listed="torch,./worker")
    run.machine = {**machine_facts(), "cpu model": "Imaginary 9000"}
    kept(run)
    text = invoke("rerun", "last", "--trust").stderr
    assert raced == [run.plan]
    assert "fairlap: cpu model Imaginary 9000 -> " in text
    assert "fairlap: torch 1.2.3 -> " in text
    assert "kernel" not in text


def test_a_rerun_on_the_same_machine_says_that_nothing_differs(raced: list[object]) -> None:
    run = a_run(listed="./worker,./other")
    run.machine = machine_facts()
    kept(run)
    assert "no known change of machine and versions" in invoke("rerun", "last", "--trust").stderr


def test_a_version_that_reports_more_of_itself_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(listed="torch,jax")
    run.machine = machine_facts()
    now = {"torch": "2.1", "jax": "0.10.2"}
    monkeypatch.setattr("fairlap.history.stale._version_now", lambda framework, _device: now[framework])

    def differences(version: dict[str, str]) -> list[str]:
        for process in run.processes:
            process.version = version[process.contestant]
        return _changes(run, print)

    assert differences({"torch": "2.1+cpu", "jax": "0.10.2-34-ab"}) == []
    assert "versions" in _no_change(run)
    assert differences({"torch": "2.13", "jax": "0.10.2"}) == ["torch 2.13 -> 2.1"]


def test_a_rerun_where_the_cores_are_missing_is_refused(raced: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    kept()
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {7})
    assert "0, 1" in str(refusal("rerun", "last"))
    assert raced == []


def test_contestants_of_several_works_have_a_line_for_each_work() -> None:
    run = a_run()
    from msgspec.structs import replace

    works = (run.plan.works[0], replace(run.plan.works[0], batch=8))
    blocks = tuple(replace(block, work=block.number % 2) for block in run.plan.blocks)
    run.plan = replace(run.plan, works=works, blocks=blocks)
    processes: list[ProcessResult] = run.processes
    for process in processes:
        process.work_id = works[process.block % 2].id
    kept(run)
    lines = output("runs").splitlines()
    assert len(lines) == 2
    assert "batch 4: 1= jax:fast" in lines[0]
    assert lines[1].strip().startswith("mlp · infer · fp32 · batch 8: 1= jax:fast")


def test_two_works_of_one_title_are_told_apart_in_the_list() -> None:
    """A model and a file of its name, of which the second has other sizes inside, in one run and in two."""
    first = a_run()
    [work] = first.plan.works
    other = msgspec.structs.replace(work, source=Source("mlp", "/elsewhere/mlp", "/", files=(("mlp", "0" * 64),)))
    assert (other.label, other.id == work.id) == (work.label, False)
    second = a_run()
    second.plan = msgspec.structs.replace(second.plan, works=(other,))
    for process in second.processes:
        process.work_id = other.id
    runs = [kept(first), kept(second)]
    lines = {line.split()[0]: line for line in output("runs").splitlines()}
    assert [work.id[:8] in lines[runs[0]], other.id[:8] in lines[runs[1]]] == [True, True]
    ids = [tuple(each["work_ids"]) for each in json.loads(output("runs", "--json"))["runs"]]
    assert sorted(ids) == sorted([(work.id,), (other.id,)])
    assert work.id[:8] not in output("runs", "--limit", "1")
