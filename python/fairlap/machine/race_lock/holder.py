"""Who holds a name in the kernel's list of abstract sockets.

A race holds each of its cores by a listening socket with the core's name, and names itself by one more:
``.../race/PID/BEGAN/ENDS``. The kernel frees a name when its process ends, however that ends, and reports the process
and the user behind a name (``SO_PEERCRED``); neither can be forged. There is no file that another user could replace,
link elsewhere or lock.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.errors import shortened
from fairlap.machine.programs.processes import process_stat
from fairlap.printable import one_line
from fairlap.secrets import without_secrets

SETTING = "FAIRLAP_LOCK"
_VERSION = "fairlap/1"
_CREDENTIALS = struct.Struct("3i")
_UNKNOWN = -1


@dataclass(frozen=True)
class Holder:
    """The process behind a name; 0 and -1 where the kernel does not report them, as from another container."""

    pid: int = 0
    user: int = _UNKNOWN
    began: float | None = None  # seconds since the epoch
    ends: float | None = None  # at the latest, where that is known

    @property
    def is_trusted(self) -> bool:
        """Whether it may be waited for without end: a process of this user or of root."""
        return self.user in (os.geteuid(), 0)

    def __str__(self) -> str:
        text = f"process {self.pid}" if self.pid else "a process that cannot be seen"
        if command := _command(self.pid):
            text += f" ({command})"
        if self.user not in (os.geteuid(), _UNKNOWN):
            text += f" of user {self.user}"
        if self.began is not None:
            text += f", since {time.strftime('%H:%M:%S', time.localtime(self.began))}"
        left_s = 0.0 if self.ends is None else self.ends - time.time()
        return text + (f", at most {quantity_text.seconds(left_s)} more" if left_s > 0 else "")


def prefix() -> str:
    """Begin every name with the value of FAIRLAP_LOCK: races with another value are not seen."""
    value = os.environ.get(SETTING, "")
    if not value:
        return _VERSION
    import hashlib

    return f"{_VERSION}/{hashlib.sha256(os.fsencode(value)).hexdigest()[:16]}"


def listening(name: str, backlog: int) -> socket.socket:
    """Take a name; raises OSError with EADDRINUSE where it is taken."""
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        taken.bind(f"\0{name}")
        taken.listen(backlog)
    except BaseException:
        taken.close()
        raise
    return taken


def connected(name: str) -> socket.socket | None:
    """Connect to what holds a name; it hangs up when the name is free again. None where nothing answers."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        connection.connect(f"\0{name}")
    except OSError:  # free, not listening yet, or with as many waiting as the kernel allows
        connection.close()
        return None
    return connection


def holder_behind(connection: socket.socket) -> Holder:
    pid, user = _peer(connection)
    return next((race for race in _races() if race.pid == pid), Holder(pid, user))


def races_running() -> list[Holder]:
    """Every race with this value of FAIRLAP_LOCK that has begun, but for this process and what started it."""
    above = processes_above()
    return [race for race in _races() if race.pid not in above]


def name_of_race(began: float, ends: float | None) -> str:
    return f"{prefix()}/race/{os.getpid()}/{began:.0f}/{'' if ends is None else f'{ends:.0f}'}"


def processes_above() -> set[int]:
    """List this process and those that started it, up to the first: what they hold, this process may use."""
    found = {os.getpid()}
    parent = os.getppid()
    while parent > 0 and parent not in found:
        found.add(parent)
        stat = process_stat(parent)
        parent = stat.parent if stat else 0
    return found


def _races() -> Iterator[Holder]:
    """Read the names of races. Anyone can take such a name, so the kernel is asked whose it is."""
    begin = f"{prefix()}/race/"
    try:
        with open("/proc/net/unix", errors="replace") as file:  # noqa: PTH123
            listed = {line.rstrip("\n").rpartition(" ")[2] for line in file}
    except OSError:
        return
    for name in sorted(each[1:] for each in listed if each.startswith(f"@{begin}")):
        named_pid, *times = name[len(begin) :].split("/")
        if len(times) != 2 or (connection := connected(name)) is None:
            continue
        with connection:
            pid, user = _peer(connection)
        if named_pid == str(pid):
            yield Holder(pid, user, *map(_time, times))


def _time(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


def _peer(connection: socket.socket) -> tuple[int, int]:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _group = _CREDENTIALS.unpack(credentials)
    return pid, user


def _command(pid: int) -> str:
    """Empty where the system hides it."""
    if not pid:
        return ""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            words = file.read().decode(errors="replace").split("\0")
    except OSError:
        return ""
    first, *rest = words
    text = " ".join(" ".join([os.path.basename(first), *rest]).split())  # noqa: PTH119
    return shortened(one_line(without_secrets(text)), 80)
