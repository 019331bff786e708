"""A program that is called answers each call, is lost for a reason, and ends with whoever called it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fairlap.launch.cluster.called_program import ProgramHere, ProgramLost
from fairlap.machine.programs.processes import lives
from machine_marks import needs_proc
from processes_seen import wait_until_empty

NAME = "program_that_is_called"
CODE = """
import os, sys, time
from fairlap.launch.cluster.called_program import answer_calls

def answer(call):
    print("what is printed is no answer", flush=True)
    if call == b"raise":
        raise ValueError("no such call")
    if call == b"sleep":
        time.sleep(100)
    return call[::-1]

answer_calls(answer)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / f"{NAME}.py").write_text(CODE)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, "PYTHONPATH": path}


@pytest.fixture
def program(environment: dict[str, str]) -> Iterator[ProgramHere]:
    found = ProgramHere(NAME, environment)
    yield found
    found.close()


def test_each_call_has_its_answer_whatever_is_printed(program: ProgramHere) -> None:
    for call in (b"", b"abc", bytes(range(256)) * 40_000):
        assert program.call(call, 30) == call[::-1]


def test_one_that_raises_is_lost_with_its_last_words(program: ProgramHere) -> None:
    with pytest.raises(ProgramLost) as lost:
        program.call(b"raise", 30)
    assert "ValueError: no such call" in str(lost.value)
    with pytest.raises(ProgramLost):
        program.call(b"abc", 30)


def test_one_that_is_late_is_killed(program: ProgramHere) -> None:
    program.call(b"", 30)
    with pytest.raises(ProgramLost):
        program.call(b"sleep", 0.2)
    wait_until_empty(lambda: lives(program.pid))


def test_one_that_is_killed_is_lost_with_the_signal(program: ProgramHere) -> None:
    program.call(b"", 30)
    os.kill(program.pid, signal.SIGKILL)
    with pytest.raises(ProgramLost) as lost:
        program.call(b"abc", 30)
    assert "SIGKILL" in str(lost.value)


def test_a_call_that_waits_in_a_thread_ends_when_another_one_closes(program: ProgramHere) -> None:
    program.call(b"", 30)
    found: list[ProgramLost] = []

    def wait() -> None:
        try:
            program.call(b"sleep", 240)
        except ProgramLost as lost:
            found.append(lost)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    program.close()
    waiting.join(120)
    assert len(found) == 1


@needs_proc
def test_one_whose_caller_is_killed_ends_whatever_it_is_doing(environment: dict[str, str]) -> None:
    code = (
        "import os; from fairlap.launch.cluster.called_program import ProgramHere;"
        f" program = ProgramHere({NAME!r}); program.call(b'', 30); print(program.pid, flush=True);"
        " program.call(b'sleep', 60)"
    )
    caller = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    pid = int(caller.stdout.readline())
    caller.kill()
    caller.communicate()
    wait_until_empty(lambda: lives(pid))
