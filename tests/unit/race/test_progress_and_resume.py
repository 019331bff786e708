"""Progress says how far it is and never who leads; an interrupted race goes on where it was."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import error_code, here
from fairlap.errors import NotAvailable
from fairlap.race.planning.plan import Plan
from fairlap.race.progress import Lines, Live, Messages, Silence, TimeLeft, progress_for
from fairlap.race.resume import whole_blocks
from fairlap.race.run import roofs_for
from fairlap.race.stopping import blinded_half_width
from fairlap.render.outputs import read_rows
from fairlap.request.work import Work
from fairlap.scenarios.learning.race.training_run import EpochsLeft
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.store.runs.run_file import load_run, save_run
from fairlap.store.store import open_store
from msgspec.structs import replace
from small_races import plan_of, run_race, small_plan
from terminals import on_a_terminal

WORK = Work("mlp", 4)
RACE = ["compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--conditions", "as-found"]


def plan(blocks: int = 8) -> Plan:
    return small_plan("a,b", WORK, blocks=blocks)


def process(block: int, name: str, ns: float = 1e6, took_s: float = 1.0) -> ProcessResult:
    figure = Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)
    return ProcessResult(block, 0, name, WORK.id, "as-found", timings={"wall_ns": figure}, elapsed_s=took_s)


def processes_around(a_ns: float, b_ns: float) -> list[ProcessResult]:
    wobble = [1.0, 1.01, 0.99, 1.02, 1.0, 0.98, 1.01, 1.0]
    return [one for n, by in enumerate(wobble) for one in (process(n, "a", a_ns * by), process(n, "b", b_ns))]


def test_the_width_shown_does_not_depend_on_who_has_which_figure() -> None:
    swapped = processes_around(1e6, 1.3e6)
    for one in swapped[:6]:
        one.contestant = {"a": "b", "b": "a"}[one.contestant]
    width = blinded_half_width(plan(), processes_around(1e6, 1.3e6))
    assert 0.001 < width < 0.1
    assert blinded_half_width(plan(), swapped) == pytest.approx(width)


def test_before_two_blocks_there_is_no_width() -> None:
    assert blinded_half_width(plan(), []) == math.inf
    assert blinded_half_width(plan(), [process(0, "a"), process(0, "b")]) == math.inf


def test_the_time_left_counts_each_contestant_by_its_own_processes() -> None:
    left = TimeLeft(plan(blocks=3))
    assert math.isnan(left.seconds(0))
    left.ended(process(0, "a", took_s=1.0))
    assert left.seconds(1) == pytest.approx(5.0)  # five more, each as long as the only one that is known
    left.ended(process(0, "b", took_s=3.0))
    assert left.seconds(2) == pytest.approx(8.0)
    assert left.seconds(6) == 0


def trained(name: str, scores: tuple[float | None, ...], block: int = 0) -> ProcessResult:
    found = process(block, name)
    evaluations = tuple(Evaluation(10 * n, 2.0 * n, score, 0.1) for n, score in enumerate(scores, start=1))
    found.learning = LearningCurve(0.95, evaluations)
    return found


def test_the_time_left_in_training_is_that_of_all_epochs_that_may_come() -> None:
    left = EpochsLeft(replace(plan(), most_epochs=10))
    assert left.seconds(trained("a", (0.5,)), now_s=100.0) == pytest.approx(2.0 * (9 + 10))  # as long as its steps
    assert left.seconds(trained("b", (0.6,)), now_s=103.0) == pytest.approx(3.0 * (9 + 9))
    assert left.seconds(trained("a", (0.5, 0.96)), now_s=108.0) == pytest.approx(4.0 * (0 + 9))
    assert left.seconds(trained("b", (0.6, 0.96)), now_s=109.0) == 0
    assert left.seconds(trained("b", (0.6,), block=1), now_s=200.0) == pytest.approx(2.0 * (9 + 10))


def test_in_a_terminal_each_epoch_has_its_score_and_the_time_left_within_the_budget(
    capsys: pytest.CaptureFixture[str],
) -> None:
    raced = replace(plan(), most_epochs=10, to_score=0.95)
    shown, left = Live(raced, budget_s=7.0), EpochsLeft(raced)

    def goes_on(process: ProcessResult) -> None:
        shown.goes_on(process, left.text(process), left.seconds(process, now_s=0.0))

    goes_on(trained("a", (0.5, 0.75)))
    now = str(shown._bar.tasks[0].fields["now"])
    for expected in ("a", "epoch 2 of at most 10", "score 75 % of 95 %"):
        assert f"· {expected} ·" in now
    assert re.search(r"at most [67] s", now)  # of 38
    goes_on(trained("a", (0.5, 0.75, None)))
    now = str(shown._bar.tasks[0].fields["now"])
    assert "epoch 3 of at most 10" in now
    assert "score 75 % of 95 %" in now  # the last known one
    quiet = Lines(plan())
    quiet.goes_on(trained("a", (0.5,)), "epoch 1", 1.0)
    assert capsys.readouterr().err == ""


def test_in_a_terminal_the_width_is_found_when_every_work_has_another_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not after each block of one of many works, which would take as long as some of their calls."""
    asked: list[int] = []

    def counted(_plan: Plan, processes: list[ProcessResult]) -> float:
        asked.append(len(processes))
        return 0.01

    monkeypatch.setattr("fairlap.race.progress.blinded_half_width", counted)
    works = tuple(Work("mlp", batch) for batch in (1, 2, 4))
    shown = Live(replace(plan(), works=works), budget_s=None)
    every = [process(block, name) for block in range(9) for name in ("a", "b")]
    for ended in range(2, len(every) + 1, 2):
        shown.block_over(every[:ended])
    assert asked == [6, 12, 18]
    assert "intervals" in str(shown._bar.tasks[0].fields["width"])


def test_outside_a_terminal_a_long_wait_has_lines_with_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines(plan(), every_s=0.05) as shown:
        shown.ended(1, process(0, "a", took_s=3.0))
        shown.began(process(0, "b"))
        assert waited_for(capsys, r"still running: block 0 · as-found · b · .* · 45 s left")
    capsys.readouterr()
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_what_takes_long_before_a_race_has_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    with Messages(every_s=0.05) as shown:
        time.sleep(0.2)
        assert capsys.readouterr().err == ""  # nothing has begun
        shown.announce("converting model.onnx")
        assert waited_for(capsys, "still running: converting model.onnx")


def waited_for(capsys: pytest.CaptureFixture[str], pattern: str) -> bool:
    """For a line on standard error."""
    shown, end_s = "", time.monotonic() + 120
    while not re.search(pattern, shown) and time.monotonic() < end_s:
        time.sleep(0.02)
        shown += capsys.readouterr().err
    return bool(re.search(pattern, shown))


def test_outside_a_terminal_each_process_has_a_line_and_quiet_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    shown = progress_for(plan(), quiet=False)
    assert type(shown) is Lines
    with shown:
        shown.ended(1, process(0, "a"))
    line = capsys.readouterr().err
    assert line.startswith("[1/16] block 0 as-found a on mlp · infer · fp32 · batch 4: ")
    assert "1.000 ms" not in line  # who leads is not shown before the end
    quiet = progress_for(plan(), quiet=True)
    assert type(quiet) is Silence
    with quiet:
        quiet.began(process(0, "a"))
        quiet.ended(1, process(0, "a"))
        quiet.block_over([])
        quiet.say("something went wrong")
    assert capsys.readouterr().err == "fairlap: something went wrong\n"


class Announced(Silence):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def announce(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.usefixtures("example")
def test_a_quiet_race_shows_neither_its_preparation_nor_what_runs_after_its_blocks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = Announced()
    race = run_race(plan_of("example", profile_processes=1, max_batch=2, recompile=(2,)), shown)
    assert [process.outcome for process in race.processes] == ["finished"]
    for begun in ("weights", "batch", "profil", "compil"):
        assert any(begun in line for line in shown.lines)
    assert capsys.readouterr().err == ""


def test_a_quiet_race_shows_that_roofs_are_absent_and_not_that_they_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(_threads: int) -> None:
        raise NotAvailable("no roofs here")

    monkeypatch.setattr("fairlap.race.run.kept_roofs", lambda _threads: None)
    monkeypatch.setattr("fairlap.race.run.roofs_of", absent)
    announced: list[str] = []
    reported: list[str] = []
    assert roofs_for(plan(), announced.append, reported.append) is None
    assert len(announced) == 1
    assert len(reported) == 1
    assert "no roofs here" in reported[0]


def test_only_whole_blocks_are_kept_of_an_interrupted_race() -> None:
    processes = [process(0, "a"), process(0, "b"), process(1, "a")]
    assert whole_blocks(plan(), processes) == processes[:2]


def in_a_terminal(arguments: list[str], **variables: str) -> str:
    """Return what fairlap writes to a terminal on its standard error."""
    status, written = on_a_terminal(*arguments, variables=variables, columns=160, only_errors=True)
    assert status == 0
    return written


@pytest.fixture(scope="module")
def written() -> str:
    return in_a_terminal([*RACE, "--blocks", "2", "--seconds", "0.02"])


@pytest.mark.sanitized
def test_a_terminal_shows_how_far_it_is_and_gets_its_cursor_back(written: str) -> None:
    assert "4/4" in written
    assert re.search(r"\d+ s left", written)
    assert "block 1 · as-found · python:call=os.getp" in written
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
    assert "times as fast" not in written


@pytest.mark.slow
@pytest.mark.sanitized
def test_no_colour_is_written_where_none_is_wanted(written: str) -> None:
    plain = in_a_terminal(
        [*RACE[:3], "python:call=os.getpid", *RACE[4:], "--blocks", "1", "--seconds", "0.02"], NO_COLOR="1"
    )
    colours = re.compile(r"\x1b\[[0-9;]*3[0-9]")
    assert colours.search(written)
    assert not colours.search(plain)


@pytest.mark.slow
@pytest.mark.sanitized
def test_an_interrupted_race_prints_how_to_resume_it_and_is_resumed(tmp_path: Path) -> None:
    file = tmp_path / "race.json"
    arguments = [*RACE, "--blocks", "10", "--seconds", "0.05", "-o", str(file)]
    running = subprocess.Popen([sys.executable, "-m", "fairlap", *arguments], stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("[5/20]"):
            running.send_signal(signal.SIGINT)
            break
    told = running.stderr.read()
    assert running.wait(timeout=60) == 130
    resume = re.search(r"resume with: fairlap (compare --resume .*)", told)
    assert resume, told
    assert str(file) in resume[1]
    before = load_run(file)
    assert 5 <= len(before.processes) < 20
    again = subprocess.run(
        [sys.executable, "-m", "fairlap", *resume[1].split(), "--quiet"], capture_output=True, text=True, timeout=120
    )
    assert again.returncode == 0, again.stderr
    kept = len(whole_blocks(before.plan, before.processes))
    assert f"resumed with {kept} of 20 processes" in again.stderr
    after = load_run(file)
    assert len(after.processes) == 20
    assert after.processes[:kept] == before.processes[:kept]
    assert after.began_at == before.began_at
    assert after.wall_s["whole"] > before.wall_s["whole"]


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_race_interrupted_while_the_smallest_memory_is_looked_for_says_so_and_the_search_is_finished(
    tmp_path: Path,
) -> None:
    file, rows = tmp_path / "race.json", tmp_path / "rows.csv"
    limited = {**os.environ, "FAIRLAP_CONTROL_GROUP": "none"}
    arguments = ["compare", "callable", "--on", "python:call=os.getpid", "--conditions", "as-found", "--blocks", "1"]
    wanted = ["--seconds", "0.02", "--min-memory", "-o", str(file), "-o", str(rows)]
    command = [sys.executable, "-m", "fairlap", *arguments, *wanted]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=limited)
    assert running.stderr is not None
    for line in running.stderr:
        if "looking for the smallest memory" in line:
            running.send_signal(signal.SIGINT)
            break
    told = running.stderr.read()
    assert running.wait(timeout=60) == 130
    assert "interrupted while searching for the smallest memory of python:call=os.getpid" in told
    [row] = read_rows(rows)
    assert "interrupted" in row.absent["min_memory_bytes"]
    assert "--resume" in row.absent["min_memory_bytes"]
    again = [sys.executable, "-m", "fairlap", "compare", "--resume", "last", "-o", str(file), "--quiet"]
    done = subprocess.run(again, capture_output=True, text=True, timeout=240, env=limited)
    assert done.returncode == 0, done.stderr
    [process] = load_run(file).processes
    assert process.smallest_memory is not None
    assert process.smallest_memory.bytes is not None


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_run_of_another_machine_is_not_resumed(tmp_path: Path) -> None:
    file = tmp_path / "race.json"
    assert here(*RACE, "--blocks", "1", "--seconds", "0.02", "-o", file).returncode == 0
    run = load_run(file)
    run.machine["cores"] = "1000"
    save_run(file, run)
    with open_store() as store:
        run_id = store.import_from(file)
    refused = here("compare", "--resume", run_id)
    assert (refused.returncode, error_code(refused)) == (2, "E_RESUME")
    assert "1000" in refused.stderr
