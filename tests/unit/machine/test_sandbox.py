"""A confined process has its own files, computes with threads, and reaches nothing else."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fairlap.machine.programs.sandbox import has_seccomp, landlock_version

pytestmark = pytest.mark.skipif(
    landlock_version() < 3 or not has_seccomp(), reason="needs Linux 6.2 or later with Landlock and seccomp"
)

PROGRAM = """
import fcntl, json, os, resource, shutil, signal, socket, struct, subprocess, sys, threading
from pathlib import Path
from fairlap.machine.programs.sandbox import confine
folder = Path(sys.argv[1])
from fairlap.machine.files.scratch_folder import SHARED_MEMORY
outside = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
outside.bind(str(folder / "outside"))
server = socket.socket(socket.AF_UNIX)
server.bind(str(folder / "server"))
server.listen()
gpu = sys.argv[2] == "gpu"
confine([folder / "model"], [folder / "own"], starts="programs" if gpu else sys.argv[2], gpu=gpu)
parent, rival = f"/proc/{os.getppid()}/environ", int(sys.argv[4])
io_of_a_process, io_idle = 1, 3 << 13

def call(number, *arguments):
    import ctypes
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")

def in_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(sum(range(1000))))
    thread.start(); thread.join()
    return found

def named():
    thread = threading.Thread(target=lambda: Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("x"))
    caught = []
    threading.excepthook = lambda raised: caught.append(raised.exc_value)
    thread.start(); thread.join()
    if caught: raise caught[0]

def listening():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made:
        made.bind("\\0fairlap-" + str(os.getpid()))
        made.listen()

def connected(kind):
    with socket.socket(socket.AF_UNIX, kind) as made:
        made.connect(str(folder / "server"))

def datagram():
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", str(folder / "outside"))

def attributes():
    # by the call that Linux has since 6.13
    import ctypes, struct
    value = ctypes.create_string_buffer(b"x")
    given = ctypes.create_string_buffer(struct.pack("=QII", ctypes.addressof(value), 1, 0))
    call(463, -100, str(folder / "own" / "file").encode(), 0, b"user.fairlap", given, ctypes.c_size_t(16))

def timer():
    import ctypes
    made = ctypes.c_void_p()
    call({"x86_64": 222, "aarch64": 107}[os.uname().machine], 1, None, ctypes.byref(made))

def python():
    return subprocess.run([sys.executable, "-c", f"open({str(folder / 'secret')!r})"], stderr=-1).returncode

tries = dict(
    model=lambda: (folder / "model").read_text(),
    own=lambda: (folder / "own" / "file").write_text("x"),
    touched=lambda: ((folder / "own" / "touched").touch(), (folder / "own" / "touched").read_text()),
    numpy=lambda: __import__("numpy").ones(3).sum(),
    threads=in_thread,
    secret=lambda: (folder / "secret").read_text(),
    beside=lambda: (folder / "beside").write_text("x"),
    over=lambda: (folder / "model").write_text("x"),
    emptied=lambda: os.truncate(folder / "model", 0),
    removed=lambda: (folder / "model").unlink(),
    linked=lambda: os.link(folder / "secret", folder / "own" / "link"),
    listed=lambda: os.listdir(folder),
    copied=lambda: shutil.copy(folder / "model", folder / "own" / "copy"),
    tcp=lambda: socket.create_connection(("127.0.0.1", int(sys.argv[3])), 1),
    unix=lambda: socket.socket(socket.AF_UNIX),
    pair=lambda: socket.socketpair(),
    datagram=datagram,
    datagrams=lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    raw=lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW),
    udp=lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
    netlink=lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    stream=lambda: connected(socket.SOCK_STREAM),
    packets=lambda: connected(socket.SOCK_SEQPACKET),
    listening=listening,
    named=named,
    kernel=lambda: open("/proc/sys/kernel/core_pattern", "r+b").close(),
    commands=lambda: Path(f"/proc/{os.getppid()}/cmdline").read_bytes(),
    itself=lambda: Path("/proc/self/maps").read_bytes()[:9],
    processor=lambda: Path("/sys/devices/system/cpu/online").read_text(),
    accounts=lambda: Path("/etc/shadow").read_text(),
    cached=lambda: os.listdir("/var"),
    shell=lambda: subprocess.run(["/bin/sh", "-c", "true"]),
    fork=lambda: os._exit(0) if os.fork() == 0 else None,
    parent=lambda: os.kill(os.getppid(), 0),
    moved=lambda: os.sched_setaffinity(rival, {min(os.sched_getaffinity(0))}),
    slowed=lambda: os.setpriority(os.PRIO_PROCESS, rival, 10),
    slowed_all=lambda: os.setpriority(os.PRIO_USER, 0, 10),
    slowed_group=lambda: os.setpriority(os.PRIO_PGRP, 0, 10),
    last=lambda: os.sched_setscheduler(rival, os.SCHED_BATCH, os.sched_param(0)),
    parameters=lambda: os.sched_setparam(rival, os.sched_param(0)),
    disk=lambda: call({"x86_64": 251, "aarch64": 30}[os.uname().machine], io_of_a_process, rival, io_idle),
    attributes=attributes,
    own_cores=lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
    own_priority=lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0)),
    own_class=lambda: os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)),
    limits=lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU),
    own_limits=lambda: resource.getrlimit(resource.RLIMIT_CPU),
    environment=lambda: Path(parent).read_bytes(),
    timer=timer,
    signalled=lambda: fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid()),
    which_signal=lambda: fcntl.fcntl(0, fcntl.F_SETSIG, signal.SIGCONT),
    signalled_by_a_socket=lambda: fcntl.ioctl(socket.socketpair()[0], 0x8901, struct.pack("i", os.getpid())),
    flags=lambda: fcntl.fcntl(0, fcntl.F_GETFL),
    own_lock=lambda: fcntl.lockf(open(folder / "own" / "file", "w"), fcntl.LOCK_EX | fcntl.LOCK_NB),
    python=python,
)
done = {}
for name, act in tries.items():
    try:
        done[name] = repr(act())
    except OSError as error:
        done[name] = None
print(json.dumps(done))
"""
INSIDE = {"model", "own", "touched", "numpy", "threads", "pair", "itself", "processor", "copied", "own_limits"}
INSIDE |= {"own_cores", "own_priority", "own_class", "flags", "own_lock"}
SIGNALS = {"timer", "signalled", "which_signal", "signalled_by_a_socket"}  # a program may need them
RIVAL = """
import sys, time
from fairlap.machine.programs.sandbox import confine
confine([], [])
print(flush=True)
time.sleep(600)
"""


def scheduling(pid: int) -> tuple[Any, ...]:
    return os.sched_getaffinity(pid), os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid)


def outcomes(tmp_path: Path, mode: str) -> dict[str, Any]:
    for name in ("model", "secret"):
        (tmp_path / name).write_text(name)
    (tmp_path / "own").mkdir()
    python = [sys.executable, "-P", "-c"]
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(
            [*python, RIVAL], stdout=subprocess.PIPE
        ) as rival,  # with as few rights, so that it may be moved
    ):
        assert rival.stdout is not None
        rival.stdout.readline()
        before = scheduling(rival.pid)
        arguments = [*python, PROGRAM, str(tmp_path), mode, str(server.getsockname()[1]), str(rival.pid)]
        done = subprocess.run(arguments, capture_output=True, check=True)
        after = scheduling(rival.pid)
        rival.kill()
    assert after == before
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_only_what_is_left_can_be_reached(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "nothing")
    assert {name for name, outcome in found.items() if outcome is not None} == INSIDE
    assert (tmp_path / "model").read_text() == "model"


def test_permissions_of_files_stay_what_they_are(tmp_path: Path) -> None:
    outcomes(tmp_path, "nothing")
    mode = (tmp_path / "secret").stat().st_mode
    confining = "from fairlap.machine.programs.sandbox import confine; confine([], [])"
    start = f"import os, sys; {confining}; os.chmod(sys.argv[1], 0)"
    subprocess.run([sys.executable, "-P", "-c", start, str(tmp_path / "secret")], check=True)
    assert (tmp_path / "secret").stat().st_mode == mode


def test_python_may_be_started_in_the_same_sandbox(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "python")
    assert found["python"] == "1"
    assert {name for name, outcome in found.items() if outcome is not None} == {
        *INSIDE,
        *SIGNALS,
        "python",
        "fork",
        "commands",
    }


def test_programs_may_be_started_in_the_same_sandbox(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "programs")
    assert found["python"] == "1"
    processes = {"python", "fork", "shell", "commands", *SIGNALS}
    assert {name for name, outcome in found.items() if outcome is not None} == {*INSIDE, *processes}


def test_with_a_gpu_threads_are_named_and_a_socket_may_listen_but_nothing_is_reached(tmp_path: Path) -> None:
    """Name threads and bind a socket with a GPU, and reach nothing.

    CUDA 13.0 starts no context otherwise: it opens /proc/self/task/*/comm for writing, and binds a Unix socket that it
    listens on, as seen on an H100.
    """
    found = outcomes(tmp_path, "gpu")
    processes = {"python", "fork", "shell", "commands", *SIGNALS}
    reached = {name for name, outcome in found.items() if outcome is not None}
    assert reached == {*INSIDE, *processes, "named", "listening", "unix"}


def test_a_process_with_threads_may_not_enter_since_they_would_stay_outside() -> None:
    start = """
import threading
from fairlap.machine.programs.sandbox import confine
threading.Thread(target=threading.Event().wait, daemon=True).start()
try:
    confine([], [])
except RuntimeError:
    raise SystemExit(7)
"""
    assert subprocess.run([sys.executable, "-P", "-c", start], check=False).returncode == 7


def test_a_process_that_may_write_nothing_locks_nothing() -> None:
    start = """
import fcntl, sys
from fairlap.machine.programs.sandbox import confine
file = open(sys.executable, "rb")
confine([], [])
refused = []
for lock in (fcntl.flock, fcntl.lockf):
    try:
        lock(file, fcntl.LOCK_SH)
    except PermissionError:
        refused.append(lock)
assert len(refused) == 2
"""
    subprocess.run([sys.executable, "-P", "-c", start], check=True)


def test_what_the_kernel_lacks_is_left_out(tmp_path: Path) -> None:
    """Neither of the two: nothing is refused, and nothing fails."""
    start = """
import os, sys
from fairlap.machine.programs import sandbox
sandbox.landlock_version, sandbox.has_seccomp = lambda: 0, lambda: False
sandbox.confine([], [])
assert not sandbox.is_confined()
assert not sandbox.means()
os.listdir(sys.argv[1])
"""
    subprocess.run([sys.executable, "-P", "-c", start, str(tmp_path)], check=True)


def test_time_and_memory_end_where_they_are_limited() -> None:
    start = "from fairlap.machine.programs.sandbox import limit; limit(0, 2**30)\n"
    endless = subprocess.run([sys.executable, "-P", "-c", f"{start}while True: pass"])
    assert endless.returncode == -signal.SIGXCPU or endless.returncode == -signal.SIGKILL
    large = subprocess.run([sys.executable, "-P", "-c", f"{start}bytearray(2**31)"], capture_output=True)
    assert b"MemoryError" in large.stderr
