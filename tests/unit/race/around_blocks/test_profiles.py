"""Profile processes are separate from timed ones: a profiler never runs in a process whose times count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from example_installed import install_example
from fairlap.errors import InvalidRequest
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.race.around_blocks.after_blocks import Findings
from fairlap.race.around_blocks.profiles import require_trace_folder
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_from_request import plan_of as plan_of_request
from fairlap.race.run import Run
from fairlap.render.report.page import page_of
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants, Device
from fairlap.request.race_request import RaceRequest
from fairlap.results.columns.operators import contestant_profiles
from fairlap.results.results import results_of
from fairlap.scenarios.calls.latency_messages import Measure
from fairlap.scenarios.untimed.profile_messages import ProfileCalls
from fairlap.store.recording import begin_recording
from fairlap.store.runs.run_file import load_run, run_document, save_run
from fairlap.store.store import open_store
from machine_marks import needs_proc
from small_races import plan_of, run_race

pytestmark = [pytest.mark.sanitized, needs_proc]


def planned(contestants: str, *, profiles: int = 2) -> Plan:
    return plan_of(contestants, rounds=2, profile_processes=profiles)


class Watched:
    """A race of ``example``, and of a variant without a profiler, and what every worker was asked for."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        install_example(folder / "installed", patch)
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        self.requests: dict[int, list[str]] = {}
        self.prepared: list[dict[str, Any]] = []
        send = WorkerProcess._send

        def sent(worker: WorkerProcess, request: Any, *rest: Any) -> None:
            self.requests.setdefault(worker.pid, []).append(type(request).__name__)
            if type(request).__name__ == "Prepare":
                self.prepared.append({name: getattr(request, name) for name in request.__struct_fields__})
            send(worker, request, *rest)

        patch.setattr(WorkerProcess, "_send", sent)
        self.kept: list[Any] = []
        race = run_race(planned("example,example:slow"), findings=Findings(keep_profile=self.kept.append))
        self.run = Run(race.plan, race.processes, {"cpu model": "one"}, race.shares(), profiles=race.findings.profiles)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    with pytest.MonkeyPatch.context() as patch:
        return Watched(tmp_path_factory.mktemp("profiles"), patch)


def test_no_process_is_both_timed_and_profiled(watched: Watched) -> None:
    timed = {pid for pid, asked in watched.requests.items() if "Measure" in asked}
    profiled = {pid for pid, asked in watched.requests.items() if "ProfileCalls" in asked}
    assert len(timed) == 2
    assert len(profiled) == 4
    assert not timed & profiled
    assert not any("profil" in name for request in watched.prepared for name in request)


def test_profile_processes_are_in_no_block_and_no_row(watched: Watched) -> None:
    assert len(watched.run.processes) == 2
    assert all("profile" not in process.phases_s for process in watched.run.processes)
    plain = Run(watched.run.plan, watched.run.processes, watched.run.machine, watched.run.wall_s)
    assert results_of(watched.run, "r").rows == results_of(plain, "r").rows


def test_every_contestant_is_profiled_as_often_as_planned_and_one_without_a_profiler_says_so(watched: Watched) -> None:
    assert watched.kept == watched.run.profiles
    good = [each for each in watched.run.profiles if each.contestant == "example"]
    other = [each for each in watched.run.profiles if each.contestant == "example:slow"]
    assert [each.number for each in good] == [each.number for each in other] == [0, 1]
    assert {(each.outcome, each.code) for each in other} == {("unsupported", "E_UNSUPPORTED")}
    for each in good:
        assert each.profile is not None, each.message
        assert each.profile.profiler == "cProfile"
        assert "forward" in {operator.name for operator in each.profile.operators}
        assert each.profile.operators_ns <= 1.1 * each.profile.call_ns


def test_the_operators_and_the_overhead_are_the_whole_call(watched: Watched) -> None:
    [profile, _] = contestant_profiles(watched.run, watched.run.plan.works[0])
    whole_ns = max(profile.call_ns, profile.operators_ns)
    assert profile.operators_ns + profile.overhead_ns == pytest.approx(whole_ns)
    assert sum(each.share for each in profile.operators) + profile.overhead_ns / whole_ns == pytest.approx(1.0)


def test_the_terminal_and_the_page_show_the_operators(watched: Watched) -> None:
    results = results_of(watched.run, "r")
    assert "cProfile" in text_of(results)
    assert "E_UNSUPPORTED" in text_of(results)
    page = page_of(results)
    assert 'id="operators"' in page
    assert "<meter" in page


def test_profiles_are_stored_exported_and_imported_with_their_run(watched: Watched, tmp_path: Path) -> None:
    with open_store(tmp_path / "one.sqlite") as store:
        recording = begin_recording(store, watched.run.plan, watched.run.machine, "2026-01-02T03:04:05+00:00")
        for process in watched.run.processes:
            recording.keep(process)
        for profile in watched.run.profiles:
            recording.keep_profile(profile)
        recording.end({})
        assert store.load("last").profiles == watched.run.profiles
        store.export_to("last", tmp_path / "run.json")
    with open_store(tmp_path / "two.sqlite") as store:
        store.import_from(tmp_path / "run.json")
        assert store.load("last").profiles == watched.run.profiles


def test_a_run_file_has_the_profiles_and_one_of_an_older_fairlap_has_none(watched: Watched, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    save_run(file, watched.run)
    assert load_run(file).profiles == watched.run.profiles
    document = json.loads(file.read_bytes())
    del document["profiles"]
    file.write_text(json.dumps(document))
    assert load_run(file).profiles == []
    assert run_document(watched.run, results_of(watched.run, "r")).profiles == watched.run.profiles


@pytest.mark.usefixtures("example")
def test_profiles_that_ran_before_an_interruption_do_not_run_again(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlap.race.around_blocks.profiles._profiled", lambda *_: pytest.fail("a profile ran again"))
    before = watched.run
    race = run_race(before.plan, resumed=before.processes, findings=Findings(profiles=list(before.profiles)))
    assert race.findings.profiles == before.profiles


@pytest.mark.usefixtures("example")
def test_nothing_is_timed_in_a_process_that_was_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = WorkerProcess.ask

    def then_measured(worker: WorkerProcess, request: Any, *, within_s: float) -> Any:
        answer = ask(worker, request, within_s=within_s)
        if isinstance(request, ProfileCalls):
            ask(worker, Measure(samples=2), within_s=within_s)
        return answer

    monkeypatch.setattr(WorkerProcess, "ask", then_measured)
    race = run_race(planned("example", profiles=1))
    [found] = race.findings.profiles
    assert (found.outcome, found.code, found.profile) == ("failed", "E_EXCEPTION", None)
    assert "profiler" in found.message


def test_a_race_on_a_gpu_may_be_profiled() -> None:
    request = RaceRequest(
        models=("mlp",), contestants=Contestants("torch"), device=Device("cuda:0"), profile=True, blocks=1
    )
    assert plan_of_request(request).profile_processes > 0


def test_a_folder_for_traces_needs_profiles_and_a_place_that_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        require_trace_folder(tmp_path / "traces", profiles=False)
    assert refused.value.code == "E_PROFILE"
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequest) as refused:
        require_trace_folder(tmp_path / "file" / "traces", profiles=True)
    assert refused.value.code == "E_PROFILE"
    require_trace_folder(tmp_path / "traces", profiles=True)
    assert not (tmp_path / "traces").exists()  # the first trace makes it


@pytest.mark.slow
@pytest.mark.usefixtures("example")
def test_a_profile_process_that_is_lost_is_an_outcome_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, losses = WorkerProcess.ask, [WorkerLost("crash", "SIGSEGV", phase="profile", code="E_CRASH")]

    def lost_once(worker: WorkerProcess, request: Any, *, within_s: float) -> Any:
        if losses and isinstance(request, ProfileCalls):
            raise losses.pop()
        return ask(worker, request, within_s=within_s)

    monkeypatch.setattr(WorkerProcess, "ask", lost_once)
    race = run_race(planned("example"))
    assert [(each.outcome, each.code) for each in race.findings.profiles] == [("crash", "E_CRASH"), ("finished", "")]
