"""A guarded process ends as its child did, and nothing of it outlives the pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from fairlap.machine.programs.process_tree import descendants

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(sys.platform != "linux", reason="orphans are handed to subreapers by Linux"),
]


def started(program: str, pipe: int) -> subprocess.Popen[str]:
    guarding = f"from fairlap.machine.programs.guardian import guarded\nguarded({pipe})"
    code = f"import os, signal, sys, time\n{guarding}\n{program}"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, pass_fds=(pipe,), start_new_session=True, text=True
    )


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("pass", 0),
        ("sys.exit(7)", 7),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
    ],
)
def test_the_guardian_ends_as_its_child_did(program: str, status: int) -> None:
    read, write = os.pipe()
    with started(program, read) as guardian:
        assert guardian.wait(120) == status
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("how", ["the pipe closes", "the guardian is asked", "the child ends"])
def test_a_daemon_without_environment_ends_with_it(how: str) -> None:
    program = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve('/bin/sleep', ['sleep', '1000'], {})
    os._exit(0)
os.wait()
print('ready', flush=True)
time.sleep(1000)
"""
    read, write = os.pipe()
    with started(program, read) as guardian:
        os.close(read)
        assert guardian.stdout is not None
        assert guardian.stdout.readline() == "ready\n"
        child, daemon = descendants(guardian.pid)
        if how == "the guardian is asked":
            guardian.terminate()
        elif how == "the child ends":
            os.kill(child, signal.SIGKILL)
        else:
            os.close(write)
        guardian.wait(120)
        assert not is_there(daemon)
        assert not is_there(child)
        if how != "the pipe closes":
            os.close(write)


def is_there(pid: int) -> bool:
    """Check for a process; a zombie does not count: a container's first process may never wait for it."""
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
                if file.read().rpartition(b") ")[2][:1] == b"Z":
                    return False
        except OSError:
            return False
        time.sleep(0.01)
    return True


def test_a_process_that_a_shell_started_has_no_guardian() -> None:
    code = "import os\nfrom fairlap.machine.programs.guardian import guarded\nbefore = os.getpid()\n"
    code += "print(guarded(0), os.getpid() == before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
