"""Give up what a process no longer needs before it reads a file that it does not trust.

That is files outside of some folders, the network, and other processes. It uses the kernel's own means, Landlock and
seccomp (Linux); both last until the process and all that it starts have ended.

https://docs.kernel.org/userspace-api/landlock.html and https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import site
import socket
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

Starts = Literal["nothing", "python", "programs"]
"""The processes that a confined one may start, all of them in the same sandbox."""

_PR_SET_NO_NEW_PRIVS = 38

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_ALONE, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1, 2, 4, 8, 1 << 14
_ACCESS_BITS = {1: 13, 2: 14, 3: 15, 4: 15}  # by version; later ones have 16
_DEVICE_CALLS = 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CALLS  # the others are for folders
_TCP, _OUTSIDE_SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals

_SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store"),
    *("/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ssl/openssl.cnf"),
    *("/dev/zero", "/dev/random", "/dev/urandom"),
)
_OF_ITSELF = (  # and of the machine; others show the command lines of all processes
    "/proc/self",
    *(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "vmstat", "version", "filesystems", "devices")),
    *(f"/proc/{name}" for name in ("cgroups", "loadavg", "uptime", "sys", "driver")),
)

_CAPABILITIES_VERSION = 0x20080522
_OWNED_BY_OTHERS = 0b110  # files of other users, within the folders that are left

_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_AS_FAST = 4  # before Linux 5.16 a filter otherwise turns speculative loads off, which slows everything down
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_LOAD, _AND, _JUMP_EQUAL, _JUMP_ANY_BIT, _JUMP_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_FIRST_ARGUMENT, _BYTES_OF_AN_ARGUMENT = 16, 8
_CLONE_VFORK, _CLONE_THREAD = 0x4000, 0x10000
_FIRST_UNKNOWN = 463  # of Linux 6.13, which writes extended attributes by new calls; x86-64 has a second table at 2^30
_MACHINES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}  # the call seccomp
_GET_AND_SET_CAPABILITIES = ((125, 126), (90, 91))
_DENIED = """
connect 42 203
io_uring_setup 425 425  io_uring_enter 426 426  io_uring_register 427 427
ptrace 101 117       process_vm_readv 310 270 process_vm_writev 311 271 pidfd_getfd 438 438   kcmp 312 272
bpf 321 280          perf_event_open 298 241  userfaultfd 323 282     open_by_handle_at 304 265
mount 165 40         umount2 166 39           pivot_root 155 41       chroot 161 51           mount_setattr 442 442
open_tree 428 428    move_mount 429 429       fsopen 430 430          fsmount 432 432         fsconfig 431 431
unshare 272 97       setns 308 268            personality 135 92      keyctl 250 219          add_key 248 217
request_key 249 218  init_module 175 105      finit_module 313 273    delete_module 176 106   reboot 169 142
kexec_load 246 104   kexec_file_load 320 294  swapon 167 224          swapoff 168 225
chown 92 -           fchown 93 55             lchown 94 -             fchownat 260 54         setxattr 188 5
lsetxattr 189 6      fsetxattr 190 7          removexattr 197 14      lremovexattr 198 15     fremovexattr 199 16
utime 132 -          utimes 235 -             futimesat 261 -         utimensat 280 88
shmget 29 194        shmat 30 196             semget 64 190           msgget 68 186           mq_open 240 180
"""
_DONE_IN_NAME = """
chmod 90 -           fchmod 91 52             fchmodat 268 53         fchmodat2 452 452
"""  # Landlock does not confine them to folders, and libraries that copy a file fail with them
_OF_PROCESSES = """
execve 59 221        execveat 322 281         fork 57 -               vfork 58 -
kill 62 129          tkill 200 130            pidfd_send_signal 424 424
timer_create 222 107
"""  # the last is a signal to come, such as one that continues a process that was stopped
_OF_SOCKETS = """
bind 49 200          listen 50 201
"""  # CUDA listens on a socket of its own when it starts
_SOCKET, _SOCKETPAIR = (41, 198), (53, 199)
_CLONE, _CLONE3 = (56, 220), (435, 435)
_OF_ITSELF_ALONE: tuple[tuple[tuple[int, int], tuple[int, ...]], ...] = (
    ((302, 261), (0,)),  # prlimit64, whose process is the first argument
    ((203, 122), (0,)),  # sched_setaffinity
    ((142, 118), (0,)),  # sched_setparam
    ((144, 119), (0,)),  # sched_setscheduler
    ((314, 274), (0,)),  # sched_setattr
    ((141, 140), (0, 0)),  # setpriority of a process, and of which
    ((251, 30), (1, 0)),  # ioprio_set, likewise
    ((256, 238), (0,)),  # migrate_pages
    ((279, 239), (0,)),  # move_pages
)
"""System calls that reach any process of the same user, and the first arguments with which they reach only this one. A
contestant could move its rivals to one core otherwise."""
_TO_A_THREAD = ((234, 131), (129, 138), (297, 240))
"""tgkill, with which abort() works, rt_sigqueueinfo and rt_tgsigqueueinfo. Before Linux 6.12, Landlock does not keep
signals from other processes; a process that may start none needs them for itself alone."""
_FCNTL, _IOCTL, _FLOCK = (72, 25), (16, 29), (73, 32)
_SIGNALS_OF_FILES = (8, 10, 15, 1024, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE and F_NOTIFY
_SIGNALS_OF_SOCKETS = (0x8901, 0x8902)  # FIOSETOWN and SIOCSPGRP
_LOCKS = (6, 7, 37, 38)  # F_SETLK, F_SETLKW and those of open files
"""Signals that come when something happens to a file, which before Linux 6.12 reach other processes, and locks. Any
process that can read the file may ask for the place and the length of a lock: a message of 126 bits to a rival."""
_KIND_BITS = 0xF  # the others are flags

_OURS = Path(__file__).parents[2]
_OWN_THREADS = Path("/proc/self/task")
_GPUS = ("nvidia*", "dri")

_confined = False
_held: list[int] = []


def landlock_version() -> int:
    """0 where the kernel lacks it, or was started without it."""
    return max(0, _syscall(_CREATE_RULESET, None, 0, _VERSION_ALONE)) if sys.platform == "linux" else 0


def has_seccomp() -> bool:
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    action = ctypes.c_uint32(_FAIL)
    return _syscall(_MACHINES[platform.machine()][2], 2, 0, ctypes.byref(action)) == 0


def means() -> str:
    """``Landlock 7, seccomp``, as far as the kernel has them; empty without both."""
    found = [f"Landlock {version}"] if (version := landlock_version()) else []
    return ", ".join([*found, *(["seccomp"] if has_seccomp() else [])])


def is_confined() -> bool:
    """Whether this process gave something up."""
    return _confined


def confine(
    readable: Iterable[Path], writable: Iterable[Path], *, starts: Starts = "nothing", gpu: bool = False
) -> None:
    """Leave these files and folders, Python's own, and the system's libraries.

    What the kernel lacks is left out: see ``landlock_version``. Child processes have other entries of /proc than this
    one, so where it starts some, all of /proc is left. ``gpu`` leaves NVIDIA's devices, and what CUDA does when it
    starts: it names its threads, and listens on a Unix socket. Nothing can be connected or sent to another one.

    A process that may start nothing gets no signal from a file, and locks none unless it may write some. Threads that
    exist already would keep their files, so there may be none.
    """
    global _confined
    writable = tuple(writable)
    if sys.platform != "linux":
        return
    if len(os.listdir(_OWN_THREADS)) > 1:  # noqa: PTH208
        raise RuntimeError("a process enters a sandbox before it starts threads")
    _confined = bool(landlock_version() or has_seccomp())
    if _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if has_seccomp():
        _drop_capabilities()
    if version := landlock_version():
        _restrict_files(version, readable, writable, starts, gpu=gpu)
    if has_seccomp():
        _filter_calls(starts, gpu=gpu, locks=bool(writable))


def _drop_capabilities() -> None:
    """Root reads the environment of any process with them, whatever Landlock says."""
    get, change = _GET_AND_SET_CAPABILITIES[_MACHINES[platform.machine()][0]]
    header = struct.pack("=Ii", _CAPABILITIES_VERSION, 0)
    found = ctypes.create_string_buffer(24)
    _checked(_syscall(get, header, found))
    effective, permitted, inherited, *_ = struct.unpack("=6I", found.raw)
    kept = [each & _OWNED_BY_OTHERS for each in (effective, permitted, inherited)]
    _checked(_syscall(change, header, struct.pack("=6I", *kept, 0, 0, 0)))


def limit(cpu_s: float, memory_bytes: int | None) -> None:
    """CPU time of all threads, and memory that is not shared. A crash leaves no image of the memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_CPU, int(cpu_s) + 1)
    if memory_bytes is not None:
        _lower(resource.RLIMIT_DATA, memory_bytes)


def _lower(which: int, wanted: int) -> None:
    _, most = resource.getrlimit(which)
    wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    with contextlib.suppress(ValueError, OSError):  # a container may refuse it
        resource.setrlimit(which, (wanted, wanted))


def _restrict_files(
    version: int, readable: Iterable[Path], writable: Iterable[Path], starts: Starts, *, gpu: bool
) -> None:
    handled = (1 << _ACCESS_BITS.get(version, 16)) - 1
    ruleset = struct.pack("=QQQ", handled, _TCP, _OUTSIDE_SCOPES)[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = _checked(_syscall(_CREATE_RULESET, ruleset, len(ruleset), 0))
    reads = (_READ_FILE | _READ_DIR) & handled
    if starts == "programs":
        reads |= _EXECUTE
    of_processes = _OF_ITSELF if starts == "nothing" else ("/proc",)
    try:
        for path in (*map(Path, (*_SYSTEM, *of_processes)), *_of_libraries(), *_of_python(), *readable):
            _allow(rules, path, reads)
        devices = [path for pattern in _GPUS for path in Path("/dev").glob(pattern)] if gpu else []
        for path in (Path(os.devnull), *devices):
            _allow(rules, path, handled & (_READ_FILE | _READ_DIR | _WRITE_FILE | _DEVICE_CALLS))
        if gpu:
            _held.append(os.open(_OWN_THREADS, os.O_PATH | os.O_CLOEXEC))  # a rule lasts as long as its file is known
            _allow(rules, _OWN_THREADS, handled & (_READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE))
        for path in writable:
            _allow(rules, path, handled if starts == "programs" else handled & ~_EXECUTE)
        for path in (Path(sys.executable), *Path("/").glob("lib*/ld-*")) if starts == "python" else ():
            _allow(rules, path, _READ_FILE | _EXECUTE)
        _checked(_syscall(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, access: int) -> None:
    """Allow access to a path, unless it does not exist."""
    try:
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        access &= -1 if path.is_dir() else _OF_FILES
        _checked(_syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", access, found), 0))
    finally:
        os.close(found)


def _of_libraries() -> list[Path]:
    """Folders that the loader searches besides the usual ones."""
    files = [file for file in Path("/etc/ld.so.conf.d").glob("*.conf") if file.is_file()]
    lines = [line.strip() for file in files for line in file.read_text(errors="replace").splitlines()]
    return [Path(line) for line in lines if line.startswith("/")]


def _of_python() -> list[Path]:
    """Where modules and their libraries are, packages installed for development included."""
    found = [
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        *sys.path,
        *site.getsitepackages(),
        str(_OURS),
        *(str(each) for each in _OURS.iterdir() if each.is_symlink()),  # where it is installed for development
    ]
    found += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    found += [file for name, module in sys.modules.items() if "." not in name and (file := _folder_of(module))]
    return [Path(each) for each in dict.fromkeys(found) if each]


def _folder_of(module: object) -> str:
    file = getattr(module, "__file__", None)
    return os.path.dirname(file) if isinstance(file, str) and hasattr(module, "__path__") else ""  # noqa: PTH120


def _filter_calls(starts: Starts, *, gpu: bool, locks: bool) -> None:
    column, machine, seccomp = _MACHINES[platform.machine()]
    denied = _numbers(_DENIED, column) + (_numbers(_OF_PROCESSES, column) if starts == "nothing" else [])
    denied += [] if locks or starts != "nothing" else [_FLOCK[column]]
    denied += [] if gpu else [_SOCKET[column], *_numbers(_OF_SOCKETS, column)]
    program = [(_LOAD, 0, 0, 4), (_JUMP_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _FAIL | errno.EPERM), (_LOAD, 0, 0, 0)]
    program += [(_JUMP_AT_LEAST, 0, 1, _FIRST_UNKNOWN), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    for number in denied:
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    for number in _numbers(_DONE_IN_NAME, column):
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | 0)]
    for numbers, first in _OF_ITSELF_ALONE:
        program += _only_with(numbers[column], first)
    for numbers in (_SOCKETPAIR, _SOCKET) if gpu else (_SOCKETPAIR,):
        program += _of_connected_unix_sockets(numbers[column])
    if starts == "nothing":
        for numbers in _TO_A_THREAD:
            program += _only_with(numbers[column], (os.getpid(),))
        program += _never_with(_FCNTL[column], (*_SIGNALS_OF_FILES, *(() if locks else _LOCKS)))
        program += _never_with(_IOCTL[column], _SIGNALS_OF_SOCKETS)
        # The flags of clone3 are in memory, where no filter sees them; C libraries fall back to clone.
        program += [(_JUMP_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
        # A thread that waits for another as vfork does cannot be stopped.
        program += [(_JUMP_EQUAL, 0, 4, _CLONE[column]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
        program += [(_JUMP_ANY_BIT, 1, 0, _CLONE_VFORK), (_JUMP_ANY_BIT, 1, 0, _CLONE_THREAD)]
        program += [(_RETURN, 0, 0, _FAIL | errno.EPERM)]
    program += [(_RETURN, 0, 0, _ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    whole = struct.pack("@HP", len(program), ctypes.addressof(code))
    _checked(_syscall(seccomp, _SET_MODE_FILTER, _ALL_THREADS | _AS_FAST, whole))


def _only_with(number: int, first: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Allow a system call with these first arguments alone."""
    looks: list[tuple[int, int, int, int]] = []
    for place, value in enumerate(first):
        to_the_refusal = 2 * (len(first) - place - 1) + 1
        looks += [(_LOAD, 0, 0, _FIRST_ARGUMENT + place * _BYTES_OF_AN_ARGUMENT)]
        looks += [(_JUMP_EQUAL, 0, to_the_refusal, value)]
    ends = [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    return [(_JUMP_EQUAL, 0, len(looks) + len(ends), number), *looks, *ends]


def _never_with(number: int, second: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Refuse a system call with one of these second arguments, of which the kernel takes the lower half."""
    looks = [(_LOAD, 0, 0, _FIRST_ARGUMENT + _BYTES_OF_AN_ARGUMENT)]
    looks += [(_JUMP_EQUAL, len(second) - place, 0, value) for place, value in enumerate(second)]
    ends = [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    return [(_JUMP_EQUAL, 0, len(looks) + len(ends), number), *looks, *ends]


def _of_connected_unix_sockets(number: int) -> list[tuple[int, int, int, int]]:
    """Streams and sequenced packets. A socket for datagrams can send to any other one without being connected."""
    return [
        (_JUMP_EQUAL, 0, 8, number),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_EQUAL, 0, 4, int(socket.AF_UNIX)),
        (_LOAD, 0, 0, _FIRST_ARGUMENT + _BYTES_OF_AN_ARGUMENT),
        (_AND, 0, 0, _KIND_BITS),
        (_JUMP_EQUAL, 2, 0, int(socket.SOCK_STREAM)),
        (_JUMP_EQUAL, 1, 0, int(socket.SOCK_SEQPACKET)),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _numbers(table: str, column: int) -> list[int]:
    words = table.split()
    return [int(number) for number in words[1 + column :: 3] if number != "-"]


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"the sandbox failed: {os.strerror(ctypes.get_errno())}")
    return result


def _syscall(number: int, *arguments: object) -> int:
    return int(_libc().syscall(ctypes.c_long(number), *(_word(each) for each in arguments)))


def _word(value: object) -> object:
    return ctypes.c_long(value) if isinstance(value, int) else value


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
