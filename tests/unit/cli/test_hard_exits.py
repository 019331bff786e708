"""Callables that end the process by ``os._exit`` end ``fairlap time`` with a line and a status."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import error_code, fairlap

CALLS = """\
import os
import threading

def ends():
    os._exit(0)

def ends_in_a_thread():
    thread = threading.Thread(target=os._exit, args=(0,))
    thread.start()
    thread.join()

def forks():
    if (child := os.fork()) == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

def sums():
    return sum(range(100))
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hard_calls.py").write_text(CALLS)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["hard_calls:ends"], "E_CALLABLE_RAISED"),
        (["hard_calls:sums", "hard_calls:ends"], "E_CALLABLE_RAISED"),
        (["hard_calls:ends_in_a_thread"], "E_EXIT"),
    ],
)
def test_a_callable_that_ends_the_process_is_no_success(names: list[str], code: str) -> None:
    done = fairlap("time", *names)
    assert (done.returncode, error_code(done)) == (2, code)


@pytest.mark.usefixtures("calls")
def test_what_a_callable_forks_ends_as_it_asks_to() -> None:
    assert fairlap("time", "hard_calls:forks", "--seconds", "0.05").returncode == 0
