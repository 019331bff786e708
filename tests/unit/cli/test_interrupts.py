"""Ctrl-C, SIGTERM and a closed terminal end a race once; a suspended race waits, and its times stay right."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import fairlap, here
from fairlap.interrupts import ignore_signals, interrupted_once, status_of
from fairlap.machine.programs.processes import DEAD, process_ids, process_stat
from fairlap.store.runs.run_file import load_run
from machine_marks import needs_proc


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    return tmp_path / "runs.sqlite"


RACE = ["compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--conditions", "as-found"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_once_and_has_its_own_status(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with interrupted_once():
        with pytest.raises(KeyboardInterrupt) as heard:
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)
    assert status_of(heard.value) == 128 + number
    assert signal.getsignal(number) is before


def test_a_library_that_replaces_the_interrupt_does_not_change_the_status() -> None:
    with interrupted_once():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            of_library = KeyboardInterrupt()
    assert status_of(of_library) == 128 + signal.SIGTERM
    with interrupted_once():
        assert status_of(KeyboardInterrupt()) == 128 + signal.SIGINT


def test_saving_is_not_interrupted() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interrupted_once():
        ignore_signals()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_was_switched_off_stays_off() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_once():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGINT, signal.SIGINT)])
def test_a_race_that_is_ended_reports_what_it_found_and_how_to_go_on(
    tmp_path: Path, signals: tuple[signal.Signals, ...]
) -> None:
    file = tmp_path / "race.json"
    arguments = [*RACE, "--blocks", "30", "--seconds", "0.05", "-o", str(file)]
    running = subprocess.Popen(
        [sys.executable, "-m", "fairlap", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("[5/60]"):
            for number in signals:
                running.send_signal(number)
            break
    table, errors = running.communicate(timeout=120)
    assert running.returncode == 128 + signals[0]
    assert "python:call=os.getpid" in table
    assert re.search(r"interrupted after \d+ of 60 processes", errors)
    [run_id] = re.findall(r"stored as (\S+);", errors)
    assert f"resume with: fairlap compare --resume {run_id} --output {file}" in errors
    assert len(load_run(file).processes) >= 4


def ended_inside(
    step: str, arguments: list[str], number: signal.Signals = signal.SIGTERM
) -> subprocess.CompletedProcess[str]:
    """Interrupt a race just when it takes this step."""
    program = (
        "import os, signal, sys\n"
        "from fairlap.cli import main; from fairlap.cli.races import run_race as compare_running\n"
        f"took = compare_running.{step}\n"
        "def step(*arguments, **named):\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    return took(*arguments, **named)\n"
        f"compare_running.{step} = step\n"
        f"sys.argv = ['fairlap', *{arguments!r}]\n"
        "main()\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


@pytest.mark.sanitized
def test_a_race_that_is_over_is_kept_and_reported_under_any_signal(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    done = ended_inside("results_of", [*RACE, "--blocks", "1", "--seconds", "0.02", "--quiet", "-o", str(rows)])
    assert done.returncode == 0, done.stderr
    assert "python:call=os.getpid" in done.stdout
    assert "stored as " in done.stderr
    assert rows.exists()


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_race_that_is_ended_before_it_began_says_so_by_its_signal() -> None:
    done = ended_inside("progress_for", [*RACE, "--blocks", "6", "--seconds", "0.02"])
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "\nfairlap: interrupted\n")


@pytest.mark.parametrize("step", ["require_settings", "one_race", "progress_for"])  # planning, waiting, preparing
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.slow_but("SIGTERM-one_race")
def test_a_signal_before_there_is_a_result_leaves_an_error_document(step: str, number: signal.Signals) -> None:
    done = ended_inside(step, [*RACE, "--blocks", "6", "--seconds", "0.02", "--json"], number)
    assert done.returncode == 128 + number
    document = json.loads(done.stdout)
    assert (document["schema"], document["error"]["code"]) == ("fairlap.error/1", "E_INTERRUPTED")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_ctrl_c_while_the_command_line_is_imported_is_one_line(words: tuple[str, ...]) -> None:
    program = (
        "import os, signal, sys\n"
        "came = []\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click' and not came:\n"
        "            came.append(name)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from fairlap.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "fairlap: interrupted\n")
    assert not words or json.loads(done.stdout)["error"]["code"] == "E_INTERRUPTED"


@pytest.mark.slow
@pytest.mark.sanitized
def test_the_file_of_a_stored_run_has_its_id(tmp_path: Path) -> None:
    file = tmp_path / "race.json"
    done = here(*RACE, "--blocks", "1", "--seconds", "0.02", "-o", file, "--quiet")
    assert json.loads(file.read_text())["id"] in done.stderr
    assert here("runs", "import", file).returncode == 2


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_full_output_still_says_where_the_run_is() -> None:
    done = fairlap(*RACE, "--blocks", "1", "--seconds", "0.02", "--quiet", after="> /dev/full")
    assert done.returncode == 1
    assert re.search(r"stored as (\S+);", done.stderr)
    assert "[E_FILE]" in done.stderr


@pytest.mark.slow
def test_a_run_whose_own_file_cannot_be_written_is_kept_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that fills up during a race, where the store is not asked for or full too."""
    monkeypatch.setattr("fairlap.cli.races.run_race.write_all", lambda *_: ["race.json could not be written"])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    done = here(*RACE, "--blocks", "1", "--seconds", "0.02", "--no-store", "-o", tmp_path / "race.json", "--quiet")
    assert done.returncode == 1
    [kept] = re.findall(r"fairlap runs import (\S+)`", done.stderr)
    assert len(load_run(Path(kept)).processes) == 2


MARK = "FAIRLAP_TEST_OF_A_SUSPENDED_RACE"
BLOCKS, SUSPENDED_S = 4, 6


def _family(mark: str, parent: int) -> list[int]:
    found = []
    for pid in process_ids():
        stat = process_stat(pid)
        try:
            is_ours = f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if is_ours and pid != parent and stat is not None and stat.state not in DEAD:
            found.append(pid)
    return found


def _processor_time_s(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
@needs_proc
def test_workers_of_a_suspended_race_wait_and_are_not_lost(tmp_path: Path) -> None:
    file, mark = tmp_path / "race.json", tmp_path.name
    variables = {**os.environ, MARK: mark, "FAIRLAP_STORE": str(tmp_path / "runs.sqlite")}
    on = ["--on", "python:call=os.getpid,python:call=os.getppid", "--blocks", str(BLOCKS), "--seconds", "0.5"]
    command = [sys.executable, "-m", "fairlap", "compare", "callable", *on, "--quiet", "-o", str(file)]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as race:
        while len(_family(mark, race.pid)) < 2:
            assert race.poll() is None
            time.sleep(0.05)
        race.send_signal(signal.SIGSTOP)
        try:
            time.sleep(SUSPENDED_S / 2)  # a turn that had begun ends by itself
            waiting = _family(mark, race.pid)
            before_s = _processor_time_s(waiting)
            time.sleep(SUSPENDED_S / 2)
            assert _family(mark, race.pid) == waiting != []
            assert _processor_time_s(waiting) - before_s < 0.1
        finally:
            race.send_signal(signal.SIGCONT)
        _, errors = race.communicate(timeout=120)
    assert race.returncode == 0, errors
    assert not _family(mark, race.pid)
    run = json.loads(file.read_text())
    assert len(run["rows"]) == 2
    for row in run["rows"]:
        assert (row["outcome"], row["processes_finished"]) == ("finished", BLOCKS)
        assert row["latency_p99_ns"]["value"] < 1e9 * SUSPENDED_S / 10
