"""A process is stopped, timed and ended with all that it started, wherever that went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fairlap.machine.programs.process_tree import ProcessTree, descendants
from fairlap.machine.programs.processes import DEAD, process_stat, thread_states
from machine_marks import needs_proc

pytestmark = [pytest.mark.sanitized, needs_proc]

STRANGER = """
def stranger(code):
    '''Forked twice, in a session of its own, with an empty environment.'''
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(sys.executable, [sys.executable, '-S', '-c', code], {})
        os._exit(0)
    os.wait()
"""
BURNS = "while True: pass"


@contextmanager
def tree_of(program: str, processes: int) -> Iterator[ProcessTree]:
    """Run the program below the worker's guardian, until it and its ``processes`` have written a line."""
    read, write = os.pipe()
    code = textwrap.dedent(
        f"""
        import os, signal, sys, threading, time
        from fairlap.machine.programs.guardian import guarded
        assert guarded({read})
        """
    )
    code += STRANGER + textwrap.dedent(program) + "\nos.write(1, b'%d\\n' % os.getpid())\ntime.sleep(1000)\n"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, pass_fds=(read,), start_new_session=True, text=True
    ) as guardian:
        os.close(read)
        try:
            assert guardian.stdout is not None
            lines = [guardian.stdout.readline() for _ in range(processes)]
            [worker] = [int(line) for line in lines if line.strip().isdecimal()]
            tree = ProcessTree(guardian.pid, worker)
            yield tree
            assert tree.kill(10.0) == ()
            assert [pid for pid in descendants(guardian.pid) if lives(pid)] == []
        finally:
            os.close(write)


def lives(pid: int) -> bool:
    stat = process_stat(pid)
    return stat is not None and stat.state not in DEAD


def states_of(tree: ProcessTree) -> set[str]:
    return {state for pid in tree._members() if lives(pid) for state in thread_states(pid)}


def cpu_clock(pid: int) -> int:
    return ~pid << 3 | 2


def until_it_computed(pid: int) -> None:
    begin_s = time.clock_gettime(cpu_clock(pid))
    while time.clock_gettime(cpu_clock(pid)) < begin_s + 0.05:
        time.sleep(0.001)


def test_what_left_its_session_its_parent_and_its_environment_is_stopped_and_ended_too() -> None:
    with tree_of(f"stranger({BURNS!r})", 1) as tree:
        assert tree.freeze(10.0) == []
        assert states_of(tree) == {"T"}
        assert len(tree.thaw()) == 2
        [stranger] = tree.cpu_of_started_s()
        until_it_computed(stranger)
        assert tree.freeze(10.0) == []
        assert max(tree.thaw().values()) == 0.0


def test_a_process_that_forks_and_ends_for_ever_is_stopped() -> None:
    program = """
    if os.fork() == 0:
        os.write(1, bytes([10]))
        while True:
            if os.fork():
                os._exit(0)
    """
    with tree_of(program, 2) as tree:
        for _ in range(5):
            assert tree.freeze(10.0) == []
            assert states_of(tree) <= {"T"}
            assert sum(tree.thaw().values()) == 0.0


def test_threads_that_were_started_late_are_stopped() -> None:
    program = """
    def burn():
        while True: pass
    def burn_with_others_after_a_signal():
        signal.sigwait({signal.SIGUSR1})
        for _ in range(2): threading.Thread(target=burn, daemon=True).start()
        burn()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    threading.Thread(target=burn_with_others_after_a_signal, daemon=True).start()
    """
    with tree_of(program, 1) as tree:
        assert tree.freeze(10.0) == []
        tree.thaw()
        [worker] = tree._members()
        assert len(thread_states(worker)) == 2
        os.kill(worker, signal.SIGUSR1)
        while len(thread_states(worker)) < 4:
            time.sleep(0.001)
        assert tree.freeze(10.0) == []
        assert thread_states(worker) == ["T"] * 4
        assert sum(tree.thaw().values()) == 0.0


def test_the_cpu_time_of_what_is_continued_by_others_is_seen() -> None:
    with tree_of(f"stranger({BURNS!r})", 1) as tree:
        assert tree.freeze(10.0) == []
        [stranger] = tree.cpu_of_started_s()
        os.kill(stranger, signal.SIGCONT)
        until_it_computed(stranger)
        used_s = tree.thaw()
        assert used_s.pop(stranger) >= 0.05
        assert set(used_s.values()) == {0.0}


def test_a_helper_that_sleeps_uses_nothing() -> None:
    with tree_of("stranger('import time; time.sleep(1000)')", 1) as tree:
        assert tree.freeze(10.0) == []
        assert sum(tree.thaw().values()) == 0.0


def test_processes_that_continue_each_other_are_stopped_or_named() -> None:
    program = """
    if not (other := os.fork()):
        other = os.getppid()
    os.write(1, bytes([10]))
    while True:
        os.kill(other, signal.SIGCONT)
    """
    with tree_of(f"stranger({'import os, signal' + textwrap.dedent(program)!r})\ntime.sleep(0.5)", 3) as tree:
        running = tree.freeze(0.5)
        assert running or states_of(tree) == {"T"}
