"""Servers that fairlap starts race like others, and are stopped between their turns."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import here, refusal
from fairlap.machine.programs.processes import lives, thread_states
from fairlap.scenarios.streams.clients.client import StreamClient
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.started.started_server import StartedServer
from machine_marks import needs, needs_proc
from published_schemas import checked
from started_by_fairlap import HOW, are_gone, pids_in, planted, row_named
from stream_races import OF_A_BUSY_MACHINE, codes, raced_by_name

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

pytestmark = needs_proc


def logs(cache: Path) -> list[str]:
    return [each.read_text() for each in sorted((cache / "servers").glob("*.log"))]


def test_two_are_started_raced_and_ended(prompts: Path, pids: Path, cache: Path) -> None:
    fast, slow = planted("--pids", pids), planted("--first-ms", 200, "--pids", pids)
    began_s = time.monotonic()
    found = raced_by_name(prompts, slow, fast, **HOW, blocks=2)
    took_s = time.monotonic() - began_s
    assert [each.contestant for each in found.rows] == [fast, slow]
    slow_ns = row_named(found, slow).latency_p50_ns
    assert slow_ns is not None
    assert slow_ns.value >= 200e6
    for row in found.rows:
        assert row.outcome == "finished"
        assert codes(row) <= OF_A_BUSY_MACHINE
        assert row.settings["started"] == "by fairlap, again for each block"
        assert 0.01 < row.scenario_figures["server_ready_s"].value < took_s
        assert row.energy_per_item_j is not None or row.absent["energy_per_item_j"]
        assert row.processes == 2
    assert len({*pids_in(pids)}) == 2 * 2  # a block is evidence of a process of its own
    assert are_gone(pids_in(pids), 0.0)
    assert len(logs(cache)) == 2 * 2
    assert all("listening" in each for each in logs(cache))


def test_each_is_stopped_while_others_have_their_turn(
    prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in "ab"]
    names = [planted("--fault", "child", "--pids", file, more=":restarts=off") for file in files]
    seen: list[tuple[str, str]] = []
    load = Contestant.load

    def noted(self: Contestant, *asked: Any, **how: Any) -> Any:
        for name, file in zip(names, files, strict=True):
            states = {state for pid in pids_in(file) for state in thread_states(pid)}
            seen.append(("own" if name == self.server.name else "other", "".join(sorted(states))))
        return load(self, *asked, **how)

    woken: list[str] = []
    monkeypatch.setattr(Contestant, "load", noted)
    monkeypatch.setattr(Contestant, "wake", lambda self, _asked: woken.append(self.server.name))
    found = raced_by_name(prompts, *names, **HOW, blocks=2)
    assert {row.settings["started"] for row in found.rows} == {"by fairlap, once"}
    assert {len(pids_in(file)) for file in files} == {2}  # itself and its child, in both blocks
    assert sorted(woken) == sorted([*names, *names])  # before each turn
    assert [row.outcome for row in found.rows] == ["finished"] * 2
    assert len(seen) == 2 * 2 * 2
    assert {states for whose, states in seen if whose == "other"} == {"T"}
    assert all("T" not in states for whose, states in seen if whose == "own")


@pytest.mark.slow
def test_no_other_process_is_left_while_one_that_is_started_again_has_its_turn(
    prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in "ab"]
    names = [planted("--fault", "child", "--pids", file) for file in files]
    running: list[tuple[str, int, int]] = []
    load = Contestant.load

    def noted(self: Contestant, *asked: Any, **how: Any) -> Any:
        own, other = (sum(map(lives, pids_in(files[place]))) for place in (0, 1))
        running.append((self.server.name, *((own, other) if self.server.name == names[0] else (other, own))))
        return load(self, *asked, **how)

    monkeypatch.setattr(Contestant, "load", noted)
    raced_by_name(prompts, *names, **HOW, blocks=3)
    assert {own for _, own, _ in running} == {2}
    assert {other for _, _, other in running[2:]} == {0}  # in the first block, it is stopped until its first turn


def test_an_answer_that_does_not_count_comes_before_those_of_a_turn(
    prompts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    ask = StreamClient.ask

    def counted(self: StreamClient, body: bytes, *manner: Any) -> Any:
        asked.append(json.loads(body)["max_tokens"])
        return ask(self, body, *manner)

    with monkeypatch.context() as patch:
        patch.setattr(Contestant, "wake", lambda *_: None)
        patch.setattr(StreamClient, "ask", counted)
        patch.setattr("fairlap.scenarios.streams.equal_work.examination._COMPARED_AGAIN", 1)
        raced_by_name(prompts, planted(), **HOW)
        without = len(asked)
    monkeypatch.setattr(StreamClient, "ask", counted)
    monkeypatch.setattr("fairlap.scenarios.streams.equal_work.examination._COMPARED_AGAIN", 1)
    found = raced_by_name(prompts, planted(), **HOW)
    assert len(asked) == 2 * without + 1
    assert found.run.processes[0].streams is not None
    assert len(found.run.processes[0].streams.requests.prompts) == 10


@pytest.mark.slow
def test_peak_memory_is_that_of_all_of_its_processes_in_both_phases(prompts: Path) -> None:
    plain, child = planted(), planted("--fault", "child", "--child-mib", 60)
    holding = planted("--hold-mib", 40)
    found = raced_by_name(prompts, plain, child, holding, **{**HOW, "rate": 20.0})
    of_plain, of_child, of_holding = (row_named(found, each).memory_bytes for each in (plain, child, holding))
    mib = 2**20
    assert 5 * mib < of_plain["peak"] < 200 * mib
    assert of_plain["peak"] == max(of_plain["peak_until_ready"], of_plain["peak_while_running"])
    assert of_child["peak_until_ready"] - of_plain["peak_until_ready"] > 55 * mib
    assert of_holding["peak_while_running"] - of_plain["peak_while_running"] > 35 * mib
    peak = row_named(found, child).peak_memory_bytes
    assert peak is not None
    assert peak.value == of_child["peak"]


@pytest.mark.slow
def test_one_that_is_slow_to_start_is_waited_for(prompts: Path) -> None:
    name = planted("--ready-after", 0.5)
    assert row_named(raced_by_name(prompts, name, **HOW), name).scenario_figures["server_ready_s"].value > 0.5


@pytest.mark.slow
def test_left_running_is_not_ranked(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StartedServer, "thaw", lambda self: "it used 1 s of CPU time in the turns of others")
    monkeypatch.setattr(StartedServer, "freeze", lambda self: "")
    name = planted()
    row = row_named(raced_by_name(prompts, name, **HOW), name)
    assert codes(row) >= {"E_LEFT_RUNNING"}
    assert row.place is None


@pytest.mark.slow
def test_a_self_test_starts_it_under_each_name(prompts: Path, pids: Path, tmp_path: Path) -> None:
    options = ("--tokens", 2, "--concurrency", 1, "--trial", "10ms", "--blocks", 6, "--runs", 1)
    done = here("self-test", prompts, "--on", planted("--pids", pids), *options, "-o", tmp_path / "self.json")
    [verdict] = json.loads((tmp_path / "self.json").read_text())["verdicts"]
    assert verdict["blocks"] == 6, done.stderr
    assert len(set(pids_in(pids))) == 2 * 6
    assert are_gone(pids_in(pids), 0.0)


def test_a_plan_from_elsewhere_starts_nothing_without_trust(
    prompts: Path, pids: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, file = tmp_path / "plan.json", tmp_path / "run.json"
    options = ("--tokens", 4, "--concurrency", 1, "--trial", "10ms", "--blocks", 1, "--quiet", "--no-store")
    name = planted("--pids", pids)
    assert here("load", prompts, "--on", name, *options, "--dry-run", "--save-plan", plan).returncode == 0
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of another machine"))
    done = here("load", plan, "--quiet", "--no-store")
    assert done.returncode == 2
    assert "E_PLAN_TRUST" in done.stderr
    assert "planted_server.py" in done.stderr
    assert not pids.exists()
    run = here("load", plan, "--trust", "--quiet", "--no-store", "-o", file)
    assert run.returncode == 0, run.stderr
    assert checked(file.read_text())["rows"][0]["contestant"] == name
    assert are_gone(pids_in(pids), 0.0)


def test_a_model_from_a_request_file_is_no_server_to_start(tmp_path: Path, pids: Path) -> None:
    file = tmp_path / "race.toml"
    file.write_text(f"models = ['mlp']\non = ['{planted('--pids', pids)}']\n")
    assert refusal("compare", file).code
    assert here("compare", file, "--no-store").returncode == 2
    assert not pids.exists()
