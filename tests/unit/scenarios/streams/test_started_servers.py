"""Servers that fairlap starts race like others, are stopped between their turns, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from command_line import fairlap, here, refusal
from fairlap.machine.programs.processes import lives, process_stat, thread_states
from fairlap.request.names import contestant_named
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.scenarios.streams.clients.client import StreamClient
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.race import started_servers
from fairlap.scenarios.streams.race.started_servers import new_log
from fairlap.scenarios.streams.servers import stream_server
from fairlap.scenarios.streams.started import started_server
from fairlap.scenarios.streams.started.started_server import ServerNotReady, StartedServer
from published_schemas import checked
from started_by_fairlap import LAST_WORDS, are_gone, pids_in, planted
from stream_races import OF_A_BUSY_MACHINE, codes, file_of_prompts, raced_by_name, without_client_floor

pytest.importorskip("httpx", reason="needs the extra streams; `make test` installs it and runs this")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the processes that one started")

HOW: dict[str, Any] = {"rate": 100.0, "trial": 0.1}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    without_client_floor(monkeypatch)
    return tmp_path / "cache"


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return file_of_prompts(tmp_path)


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    return tmp_path / "pids"


def test_the_null_server_of_the_client_outlives_the_servers_that_are_ended_between_blocks(prompts: Path) -> None:
    """A command that is a process of its own ends what its servers leave behind, and must know what is not theirs."""
    how = ("--tokens", 4, "--rate", 50, "--trial", "200ms", "--blocks", 2, "--json", "--no-store", "-q")
    for more in ((), ("--clients", 2)):
        done = fairlap("load", prompts, "--on", planted("--first-ms", 20), *how, *more)
        floors = [each["streams"]["client_floor"] for each in json.loads(done.stdout)["processes"]]
        assert [each["answered"] for each in floors] == [each["requests"] for each in floors]
        assert [each["requests"] >= 10 for each in floors] == [True, True]


def row_of(found: Results, name: str) -> Row:
    return next(each for each in found.rows if each.contestant == name)


def logs(cache: Path) -> list[str]:
    return [each.read_text() for each in sorted((cache / "servers").glob("*.log"))]


def test_two_are_started_raced_and_ended(prompts: Path, pids: Path, cache: Path) -> None:
    fast, slow = planted("--pids", pids), planted("--first-ms", 200, "--pids", pids)
    began_s = time.monotonic()
    found = raced_by_name(prompts, slow, fast, **HOW, blocks=6)
    took_s = time.monotonic() - began_s
    assert [each.contestant for each in found.rows] == [fast, slow]
    assert found.rows[1].verdict == "slower"
    for row in found.rows:
        assert row.outcome == "finished"
        assert codes(row) <= OF_A_BUSY_MACHINE
        assert row.settings["started"] == "by fairlap, again for each block"
        assert 0.01 < row.scenario_figures["server_ready_s"].value < took_s
        assert row.energy_per_item_j is not None or row.absent["energy_per_item_j"]
        assert row.processes == 6
    assert len({*pids_in(pids)}) == 2 * 6  # a block is evidence of a process of its own
    assert are_gone(pids_in(pids), 0.0)
    assert len(logs(cache)) == 2 * 6
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


def test_one_that_cannot_be_started_again_fails_and_the_other_goes_on(prompts: Path, tmp_path: Path) -> None:
    honest, once = planted(), planted("--fault", "once", "--pids", tmp_path / "once")
    found = raced_by_name(prompts, once, honest, **HOW, blocks=3)
    assert row_of(found, once).code == "E_SERVER_START"
    assert [each.outcome for each in found.run.processes if each.contestant == once] == ["finished", "failed", "failed"]
    assert row_of(found, honest).processes_finished == 3


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


def test_peak_memory_is_that_of_all_of_its_processes_in_both_phases(prompts: Path) -> None:
    plain, child = planted(), planted("--fault", "child", "--child-mib", 60)
    holding = planted("--hold-mib", 40)
    found = raced_by_name(prompts, plain, child, holding, **{**HOW, "rate": 20.0})
    of_plain, of_child, of_holding = (row_of(found, each).memory_bytes for each in (plain, child, holding))
    mib = 2**20
    assert 5 * mib < of_plain["peak"] < 200 * mib
    assert of_plain["peak"] == max(of_plain["peak_until_ready"], of_plain["peak_while_running"])
    assert of_child["peak_until_ready"] - of_plain["peak_until_ready"] > 55 * mib
    assert of_holding["peak_while_running"] - of_plain["peak_while_running"] > 35 * mib
    peak = row_of(found, child).peak_memory_bytes
    assert peak is not None
    assert peak.value == of_child["peak"]


FAULTY: dict[str, tuple[list[Any], str, str]] = {
    "is never ready": (["--fault", "never"], ":ready_within=400ms", "E_SERVER_START"),
    "does not answer": (["--fault", "silent"], ":ready_within=400ms", "E_SERVER_START"),
    "is ready too late": (["--ready-after", 1000], ":ready_within=400ms", "E_SERVER_START"),
    "dies at once": (["--fault", "dies"], "", "E_SERVER_START"),
    "dies at its fourth answer": (["--fault", "midway", "--after", 3], "", "E_SERVER_ENDED"),
    "dies later": (["--fault", "midway", "--after", 35], ":restarts=off", "E_SERVER_ENDED"),
}


@pytest.fixture(scope="module")
def found_with_faulty_ones(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, dict[str, str], Path]:
    """Race all of them in one race with an honest one, and return it, their names, and the folder of what they leave.

    Two of them would have to be waited for for a quarter of an hour.
    """
    folder = tmp_path_factory.mktemp("faulty")
    names = {
        what: planted(*options, "--pids", folder / "pids", more=more) for what, (options, more, _) in FAULTY.items()
    }
    names[""] = planted("--pids", folder / "pids")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder))
        without_client_floor(patch)
        return raced_by_name(file_of_prompts(folder), *names.values(), **HOW, blocks=3), names, folder


@pytest.mark.parametrize("what", FAULTY)
def test_one_that_fails_is_named_with_its_log_and_the_others_go_on(
    what: str, found_with_faulty_ones: tuple[Results, dict[str, str], Path]
) -> None:
    found, names, folder = found_with_faulty_ones
    _, more, code = FAULTY[what]
    row = row_of(found, names[what])
    assert (row.outcome, row.code, row.place) == ("failed", code, None)
    message = next(each.message for each in found.run.processes if each.contestant == names[what] and each.message)
    assert str(folder / "servers") in message
    assert len(message.splitlines()) == 1
    assert ("0.4 s" in message) == ("ready_within" in more)
    assert (LAST_WORDS in message) == (what == "dies at once")
    assert (row_of(found, names[""]).outcome, row_of(found, names[""]).processes_finished) == ("finished", 3)
    assert are_gone(pids_in(folder / "pids"), 0.0)


def test_one_that_is_slow_to_start_is_waited_for(prompts: Path) -> None:
    name = planted("--ready-after", 0.5)
    assert row_of(raced_by_name(prompts, name, **HOW), name).scenario_figures["server_ready_s"].value > 0.5


def test_a_program_that_is_not_there_fails_alone(prompts: Path) -> None:
    honest, missing = planted(), "serve:command=no-such-program-here {port}:model=m"
    found = raced_by_name(prompts, missing, honest, **HOW)
    assert row_of(found, missing).code == "E_NOT_INSTALLED"
    assert row_of(found, honest).outcome == "finished"


@pytest.mark.parametrize(
    ("name", "missing", "install"),
    [
        ("serve:llama-cpp", "llama_cpp", "pip install 'llama-cpp-python[server]'"),
        ("serve:llama-cpp", "sse_starlette", "pip install 'llama-cpp-python[server]'"),
        ("serve:transformers", "transformers", "pip install 'transformers[serving]' torch"),
        ("transformers", "torch", "pip install transformers torch"),
        ("onnxruntime-genai", "onnxruntime_genai", "pip install onnxruntime-genai"),
    ],
)
def test_what_is_not_installed_is_named_with_the_line_that_installs_it(
    name: str, missing: str, install: str, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.gguf" if "llama" in name else tmp_path
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    is_here = ModuleSpec("installed", None)
    monkeypatch.setattr(started_servers, "find_spec", lambda module: None if module == missing else is_here)
    lacking, honest = f"{name}:model={model}", planted()
    found = raced_by_name(prompts, lacking, honest, **HOW)
    assert row_of(found, lacking).code == "E_NOT_INSTALLED"
    message = next(each.message for each in found.run.processes if each.contestant == lacking)
    assert missing in message
    assert message.endswith(install)
    assert row_of(found, honest).outcome == "finished"


def test_another_program_on_its_port_does_not_answer_for_it(prompts: Path, pids: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f":url=http://127.0.0.1:{other.getsockname()[1]}/v1"
        name = planted("--pids", pids, more=url)
        assert row_of(raced_by_name(prompts, name, **HOW), name).code == "E_SERVER_START"
    assert not pids.exists()


def test_children_are_ended_with_it(prompts: Path, pids: Path) -> None:
    raced_by_name(prompts, planted("--fault", "child", "--pids", pids), **HOW)
    assert len(pids_in(pids)) == 2
    assert are_gone(pids_in(pids), 0.0)


@pytest.fixture
def started(prompts: Path) -> Iterator[Callable[..., StartedServer]]:
    running: list[StartedServer] = []

    def start(*options: object, more: str = "") -> StartedServer:
        server = stream_server(contestant_named(planted(*options, more=more)), chat=False, remote=False)
        running.append(StartedServer(server, dict(os.environ), new_log()))
        return running[-1]

    yield start
    for each in running:
        each.end()


def cpu_s(pid: int) -> float:
    stat = process_stat(pid)
    assert stat is not None
    return stat.cpu_s


def test_one_that_computes_while_it_is_stopped_is_found(started: Callable[..., StartedServer], pids: Path) -> None:
    spinning = started("--fault", "spins", "--pids", pids)
    spinning.wait_until_ready()
    assert spinning.freeze() == ""
    time.sleep(0.05)
    assert spinning.thaw() == ""
    spinning.freeze()
    [pid] = pids_in(pids)
    os.kill(pid, signal.SIGCONT)  # as another process of its could
    before_s = cpu_s(pid)
    while cpu_s(pid) < before_s + 0.05:
        time.sleep(0.001)
    assert "s of CPU time" in spinning.thaw()


def test_one_that_dies_later_is_named_with_its_log(started: Callable[..., StartedServer], pids: Path) -> None:
    found = started("--pids", pids)
    found.wait_until_ready()
    assert found.why_ended() is None
    os.kill(pids_in(pids)[0], signal.SIGKILL)
    while (why := found.why_ended()) is None:
        time.sleep(0.01)
    assert why.code == "E_SERVER_ENDED"
    assert "9" in why.text.partition("(")[0]
    assert ".log" in why.text


def test_one_that_prints_without_end_is_ended_before_it_fills_the_disk(
    started: Callable[..., StartedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(started_server, "_LARGEST_LOG_BYTES", 2**20)
    printing = started("--fault", "prints")
    with pytest.raises(ServerNotReady) as ended:
        printing.wait_until_ready()
    assert ended.value.code == "E_SERVER_START"
    assert printing.why_ended() is not None
    assert printing._log.stat().st_size <= 2**20


def test_left_running_is_not_ranked(prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StartedServer, "thaw", lambda self: "it used 1 s of CPU time in the turns of others")
    monkeypatch.setattr(StartedServer, "freeze", lambda self: "")
    name = planted()
    row = row_of(raced_by_name(prompts, name, **HOW), name)
    assert codes(row) >= {"E_LEFT_RUNNING"}
    assert row.place is None


def test_it_is_ready_by_the_path_that_the_user_names(started: Callable[..., StartedServer]) -> None:
    found = started(more=":health=/health")
    found.wait_until_ready()
    assert found.why_ended() is None
    with pytest.raises(ServerNotReady):
        started("--fault", "never", more=":health=/health:ready_within=200ms").wait_until_ready()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("when", ["starting", "racing"])
def test_nothing_is_left_when_fairlap_is_ended(
    number: signal.Signals, when: str, prompts: Path, pids: Path, tmp_path: Path
) -> None:
    slow = ["--ready-after", 60] if when == "starting" else ["--each-ms", 1]
    names = [planted("--fault", "child", "--pids", pids, *each) for each in ([], slow)]
    options = ["--tokens", "4", "--rate", "50", "--trial", "200ms", "--blocks", "1000", "--quiet", "--no-store"]
    command = [sys.executable, "-m", "fairlap", "load", str(prompts), "--on", ",".join(names), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (pids.exists() and len(pids_in(pids)) == 4):
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.5 if when == "racing" else 0.0)
        process.send_signal(number)
        assert process.wait(200) == {2: 130, 15: 143, 9: -9}[number]
    assert len(pids_in(pids)) == 4
    assert are_gone(pids_in(pids))


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


def test_a_self_test_starts_it_under_each_name(prompts: Path, pids: Path, tmp_path: Path) -> None:
    options = ("--tokens", 2, "--concurrency", 1, "--trial", "10ms", "--blocks", 6, "--runs", 1)
    done = here("self-test", prompts, "--on", planted("--pids", pids), *options, "-o", tmp_path / "self.json")
    [verdict] = json.loads((tmp_path / "self.json").read_text())["verdicts"]
    assert verdict["blocks"] == 6, done.stderr
    assert len(set(pids_in(pids))) == 2 * 6
    assert are_gone(pids_in(pids), 0.0)


def test_a_model_from_a_request_file_is_no_server_to_start(tmp_path: Path, pids: Path) -> None:
    file = tmp_path / "race.toml"
    file.write_text(f"models = ['mlp']\non = ['{planted('--pids', pids)}']\n")
    assert refusal("compare", file).code
    assert fairlap("compare", file, "--no-store").returncode == 2
    assert not pids.exists()
