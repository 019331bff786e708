"""Waiting for the cores and the GPU that a race needs, and holding them until it has ended.

Why sockets and not locked files: any user who can open a file can lock it for good, a file in a folder for all users
can be a link to one of yours, and what waits for a file has to look again and again, or to block where Ctrl-C does not
reach it. A name is taken at once or not at all, and what waits for it sleeps until the kernel hangs up. Network
namespaces have separate names, so containers see each other's races only where they share the host's network.
"""

from __future__ import annotations

import errno
import math
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError
from fairlap.machine.hardware.processor import siblings
from fairlap.machine.race_lock.holder import (
    Holder,
    connected,
    holder_behind,
    listening,
    name_of_race,
    prefix,
    processes_above,
    races_running,
)
from fairlap.machine.root import THIS_MACHINE
from fairlap.printable import one_line

SIDE_BY_SIDE = "W_SIDE_BY_SIDE"
DID_NOT_WAIT = "W_DID_NOT_WAIT"
EVERY_S = 30.0  # a line, while it waits
LONGEST_FOR_OTHERS_S = 600.0
_AGAIN_S = 0.2  # where a name is taken and nothing answers
_LONGEST_SLEEP_S = 1.0  # a Ctrl-C that comes just before the kernel is asked does not wake it
_MOST_WAITING = 4096

Notify = Callable[[str], object]


class MachineBusy(FairlapError):
    """Another race holds a core or the GPU, and waiting was not wanted."""

    code = "E_BUSY"


def print_to_stderr(line: str) -> None:
    if sys.stderr is not None:
        print(f"fairlap: {one_line(line)}", file=sys.stderr, flush=True)


_noted: set[str] = set()
"""Races on other cores that this process has warned of: it may race many times, for the rows of one table."""


def _note_others(running: Iterable[object], notify: Notify) -> None:
    """Warn in one line of the races that were not warned of before."""
    if others := [each for each in map(str, running) if each not in _noted]:
        _noted.update(others)
        what = "another race runs" if len(others) == 1 else f"{len(others)} other races run"
        text = f"{what} on other cores, which share caches and memory bandwidth: {'; '.join(others)}"
        notify(_line_of(Notice(SIDE_BY_SIDE, text)))


@contextmanager
def one_race(
    device: str = "cpu",
    *,
    wait: bool = True,
    longest_s: float | None = None,
    notify: Notify = print_to_stderr,
    longest_for_others_s: float = LONGEST_FOR_OTHERS_S,
) -> Iterator[None]:
    """Hold the cores that this process may use, and the GPU or GPUs ("cuda:0,cuda:1"), for the time of ``with``.

    Without ``wait``, raises ``MachineBusy`` where another race holds one of them. A process that was started inside of
    a race uses what the race holds. ``longest_s`` is how long the race may take, where that is known; it is what those
    that wait are shown.

    Races of this user and of root are waited for without end. Those of other users, and what cannot be seen, are waited
    for ``longest_for_others_s`` in all, so that no other user can keep a race from starting.
    """
    with ExitStack() as stack:
        names = names_of(sorted(os.sched_getaffinity(0)), device)
        held = _held_when_free(names, notify, wait=wait, longest_for_others_s=longest_for_others_s)
        for each in held:
            stack.callback(_release, each)
        began = time.time()
        try:
            label = listening(name_of_race(began, None if longest_s is None else began + longest_s), _MOST_WAITING)
        except OSError:  # taken by an outer race of this process within the second, or sockets are not allowed
            pass
        else:
            _held.append(label)
            stack.callback(_release, label)
        if held:  # else it is a part of a race, and so may be the others
            _note_others(races_running(), notify)
        yield


def _line_of(notice: Notice) -> str:
    return f"{notice.text} [{notice.code}]"


def names_of(cores: Sequence[int], device: str = "cpu") -> list[str]:
    """Name the physical cores, since the hardware threads of one share it, and the GPUs."""
    physical = sorted({min([core, *siblings(THIS_MACHINE, core)]) for core in cores})
    names = [f"{prefix()}/core/{core}" for core in physical]
    if device == "cpu":
        return names
    from fairlap.machine.hardware.cuda_devices import each_device

    boards = sorted({_board(each) for each in each_device(device)})  # in one order, so that two races do not cross
    return [*names, *(f"{prefix()}/gpu/{board}" for board in boards)]


def _board(device: str) -> str:
    """Return NVML's number, since processes may number GPUs in different ways."""
    from fairlap.machine.hardware.cuda_devices import Board, board_of

    board = board_of(device)
    return f"{board.index}/{board.instance}" if isinstance(board, Board) else device


@dataclass(frozen=True)
class _Taken:
    """A name that is taken, and the connection to what holds it, if that answers."""

    holder: Holder
    connection: socket.socket | None

    def __str__(self) -> str:
        return str(holder_behind(self.connection) if self.connection else self.holder)

    def is_free_within(self, seconds: float) -> bool:
        """Sleep until the holder has ended, or at most for so long. What does not answer may be free at any time."""
        if self.connection is None:
            time.sleep(min(seconds, _AGAIN_S))
            return True
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        return bool(poll.poll(max(int(min(seconds, _LONGEST_SLEEP_S) * 1000), 1)))


@dataclass
class _Waiting:
    """What has passed of the time that other users' races are waited for, and when the last line was printed."""

    notify: Notify
    longest_for_others_s: float
    for_others_s: float = 0.0
    said_s: float = -EVERY_S

    @property
    def passes_others(self) -> bool:
        return self.for_others_s >= self.longest_for_others_s

    def wait(self, taken: _Taken) -> None:
        """Until the name may be free, or until this race goes ahead beside another user's.

        All on one connection: a holder keeps also those that were closed, and has room for some thousands.
        """
        is_free = False
        while not is_free and not (self.passes_others and not taken.holder.is_trusted):
            began_s = time.monotonic()
            if began_s - self.said_s >= EVERY_S:
                self.said_s = began_s
                self.notify(f"waiting for another race: {taken}")
            limit_s = math.inf if taken.holder.is_trusted else self.longest_for_others_s - self.for_others_s
            is_free = taken.is_free_within(max(min(EVERY_S - (began_s - self.said_s), limit_s), 0.0))
            if not taken.holder.is_trusted:
                self.for_others_s += time.monotonic() - began_s


def _held_when_free(
    names: Sequence[str], notify: Notify, *, wait: bool, longest_for_others_s: float
) -> list[socket.socket]:
    waiting, is_second_try = _Waiting(notify, longest_for_others_s), False
    while True:
        held, taken, passed = _all_or_none(names, pass_others=waiting.passes_others)
        if taken is None:
            if passed is not None:
                waited = quantity_text.seconds(waiting.for_others_s)
                notify(_line_of(Notice(DID_NOT_WAIT, f"waited {waited}, and races now beside {passed}")))
            return held
        with taken.connection or ExitStack():
            if wait:
                waiting.wait(taken)
            elif is_second_try:
                raise MachineBusy(f"another race is running: {taken}; wait for it, or race on other cores")
            else:
                taken.is_free_within(_AGAIN_S)  # one that waits holds names for a moment when it tries
                is_second_try = True


def _all_or_none(
    names: Sequence[str], *, pass_others: bool
) -> tuple[list[socket.socket], _Taken | None, Holder | None]:
    """Take every name, but for those of a race that this process is a part of; or none, and show what is in the way.

    So no race keeps a core while it waits for another one. The last is another user's race that is in the way no more.
    """
    above: set[int] | None = None
    passed: Holder | None = None
    held: list[socket.socket] = []
    try:
        for name in names:
            try:
                held.append(listening(name, _MOST_WAITING))
                continue
            except OSError as error:
                if error.errno != errno.EADDRINUSE:  # no such sockets here: races cannot be kept apart
                    return held, None, passed
            connection = connected(name)
            holder = holder_behind(connection) if connection else Holder()
            above = processes_above() if above is None else above
            is_outer = holder.pid in above
            if is_outer or (pass_others and not holder.is_trusted):
                passed = passed if is_outer else holder
                if connection:
                    connection.close()
                continue
            for each in held:
                each.close()
            held.clear()
            return held, _Taken(holder, connection), passed
    finally:
        _held.extend(held)
    return held, None, passed


_held: list[socket.socket] = []


def _release(taken: socket.socket) -> None:
    taken.close()
    if taken in _held:
        _held.remove(taken)


def _close_in_fork() -> None:
    """Keep a fork that outlives the race from holding its names."""
    while _held:
        _held.pop().close()


os.register_at_fork(after_in_child=_close_in_fork)
