"""The conductor's side of its ranks: their connections, what started them, and how long they may take.

One loop waits for messages, connections, output and the deadline at once. A rank that is lost ends the wait for all.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.programs.processes import process_stat
from fairlap.scenarios.asking import Reply
from fairlap.worker.guardian import RANKS_TOKEN, kill_session
from fairlap.worker.protocol import Begin, Ended, Failed, Hello, Join, Phase, Request, line_of
from fairlap.worker.ranks.joining import notice_lost_host
from fairlap.worker.ranks.launchers import Folders, Launch
from fairlap.worker.received import NotAMessage, Received

_CHUNK_BYTES = 2**20
_KEPT_OF_PRINTS_BYTES = 64 * 2**10
_LOOK_AT_LAUNCHERS_EVERY_S = 0.2
_LOOK_AT_RANKS_EVERY_S, _LOOKS_UNTIL_STOPPED = 1.0, 10
"""Looks instead of a time: this process may have been stopped and continued together with its ranks."""

_STOPPED = "T"
_HEAR_OTHERS_OUT_S = 1.0
"""How long the others may still say what they saw of a loss. Those that exchange with a lost rank fail too."""

Answer = TypeVar("Answer", bound=Reply)


@dataclass
class Connected:
    """One rank, or a connection that has not said which."""

    connection: socket.socket
    received: Received = field(default_factory=Received)
    join: Join | None = None
    hello: Hello | None = None
    requested: str = "start"
    phase: str = "start"  # of what was requested
    looks_stopped: int = 0  # at how many looks in a row it was
    replies: list[tuple[Reply, bytes]] = field(default_factory=list)
    failed: Failed | None = None
    ended: bool = False  # it was asked to
    lost: bool = False  # its connection closed without a last message

    @property
    def is_over(self) -> bool:
        return self.lost or self.failed is not None

    @property
    def number(self) -> int:
        assert self.join is not None
        return self.join.number

    @property
    def name(self) -> str:
        assert self.join is not None
        return f"rank {self.join.number} on {self.join.host}"


@dataclass
class Launched:
    """A process that started ranks, and the end of what it printed. Its ranks print through it."""

    launch: Launch
    process: subprocess.Popen[bytes]
    printed: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        return self.printed.decode("utf-8", "replace")


class Trouble(Exception):
    """A rank or launcher ended before it was asked to, reported that it failed, or was stopped. ``lost`` finds out."""


class TooLate(Exception):
    """The deadline has passed."""


class Ranks:
    def __init__(
        self,
        launches: Sequence[Launch],
        listener: socket.socket,
        token: str,
        count: int,
        folders: Folders | None = None,
    ) -> None:
        """``folders`` go with the ranks."""
        self.count = count
        self.launched: list[Launched] = []
        self.in_order_of_loss: list[Connected] = []  # without a last message
        self.in_order_of_failure: list[Connected] = []
        self.relay: Callable[[Begin | Phase], None] = lambda _message: None  # phases of rank 0
        self._token, self._listener, self._folders = token, listener, folders
        self._connected: list[Connected] = []
        self._next_look_s = 0.0
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        for launch in launches:
            launched = Launched(launch, launch.start())
            self.launched.append(launched)
            assert launched.process.stdout is not None
            os.set_blocking(launched.process.stdout.fileno(), False)
            self._selector.register(
                launched.process.stdout, selectors.EVENT_READ, lambda launched=launched: self._read_prints(launched)
            )

    @property
    def joined(self) -> list[Connected]:
        """In order of their numbers."""
        return sorted((each for each in self._connected if each.hello is not None), key=lambda each: each.number)

    def missing(self) -> list[int]:
        """Numbers of those that have not said hello."""
        there = {each.number for each in self.joined}
        return [number for number in range(self.count) if number not in there]

    def await_all(self, deadline_s: float) -> None:
        """Until every rank has said hello. Raises Trouble or TooLate."""
        self._wait(lambda: len(self.joined) == self.count, deadline_s)

    def send(self, requests: Sequence[Request]) -> None:
        """One to each rank, in order of their numbers."""
        for rank, request in zip(self.joined, requests, strict=True):
            rank.requested = rank.phase = type(request).__name__.lower()
            with contextlib.suppress(OSError):  # it is lost, and waiting for its answer finds out why
                rank.connection.sendall(line_of(request))

    def answers(self, kind: type[Answer], deadline_s: float) -> list[tuple[Answer, bytes]]:
        """One of each rank, in order of their numbers. Raises Trouble or TooLate."""
        ranks = self.joined
        self._wait(lambda: all(rank.replies for rank in ranks), deadline_s)
        found: list[tuple[Answer, bytes]] = []
        for rank in ranks:
            reply, raw = rank.replies.pop(0)
            if not isinstance(reply, kind):
                raise NotAMessage(f"{rank.name} sent {type(reply).__name__.lower()}, which was not requested")
            found.append((reply, raw))
        return found

    def hear_out(self, until: Callable[[], bool] = lambda: False, seconds: float = _HEAR_OTHERS_OUT_S) -> None:
        """After a loss: what the others and the launchers still say."""
        deadline_s = time.monotonic() + seconds
        while time.monotonic() < deadline_s and not until():
            self._turn(min(deadline_s, time.monotonic() + _LOOK_AT_LAUNCHERS_EVERY_S))

    def waiting_for(self) -> list[Connected]:
        """Those that have not answered yet."""
        return [rank for rank in self.joined if not rank.replies]

    def stopped(self) -> list[Connected]:
        """Those of this host that a signal stopped, and that did not continue for a while."""
        return [rank for rank in self.joined if rank.looks_stopped >= _LOOKS_UNTIL_STOPPED]

    def launched_of(self, number: int) -> Launched | None:
        return next((each for each in self.launched if each.launch.has(number)), None)

    def end(self) -> None:
        """Their guardians end them when the connections close; on this host they are also killed from here."""
        for rank in self._connected:
            rank.connection.close()
        for launched in self.launched:
            kill_session(launched.process.pid, self._token, variable=RANKS_TOKEN)
            with contextlib.suppress(subprocess.TimeoutExpired):
                launched.process.wait(timeout=1.0)
            if launched.process.stdout is not None:
                launched.process.stdout.close()
        self._selector.close()
        self._listener.close()
        if self._folders is not None:
            self._folders.remove()

    def _wait(self, is_done: Callable[[], bool], deadline_s: float) -> None:
        while not is_done():
            if time.monotonic() >= deadline_s:
                raise TooLate
            self._turn(min(deadline_s, time.monotonic() + _LOOK_AT_LAUNCHERS_EVERY_S))
            if self.in_order_of_loss or self.in_order_of_failure:
                raise Trouble
            self._look_at_ranks()
            if self.stopped():
                raise Trouble
            if any(launched.process.poll() not in (None, 0) for launched in self.launched):
                raise Trouble

    def _look_at_ranks(self) -> None:
        if time.monotonic() < self._next_look_s:
            return
        self._next_look_s = time.monotonic() + _LOOK_AT_RANKS_EVERY_S
        for rank in self.joined:
            rank.looks_stopped = rank.looks_stopped + 1 if self._is_stopped(rank) else 0

    def _is_stopped(self, rank: Connected) -> bool:
        if rank.join is None or rank.hello is None or rank.join.host != socket.gethostname():
            return False  # its number is one of another host
        stat = process_stat(rank.hello.pid)
        return stat is not None and stat.state == _STOPPED

    def _turn(self, until_s: float) -> None:
        for key, _ in self._selector.select(max(0.0, until_s - time.monotonic())):
            key.data()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        notice_lost_host(connection)
        rank = Connected(connection)
        self._connected.append(rank)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._read(rank))

    def _read(self, rank: Connected) -> None:
        try:
            chunk = rank.connection.recv(_CHUNK_BYTES)
        except OSError:
            chunk = b""
        rank.received.add(chunk)
        try:
            if rank.join is None:
                self._take_join(rank)
            if rank.join is not None:
                self._take_messages(rank)
        except (NotAMessage, *NOT_THE_DOCUMENT):
            chunk = b""
        if not chunk:
            self._selector.unregister(rank.connection)
            rank.connection.close()
            if rank.join is None:
                self._connected.remove(rank)  # a stranger
            elif rank.failed is None and not rank.ended:
                rank.lost = True
                self.in_order_of_loss.append(rank)

    def _take_join(self, rank: Connected) -> None:
        line = rank.received.line()
        if line is None:
            return
        join = msgspec.json.decode(line, type=Join)
        taken = {each.number for each in self._connected if each.join is not None}
        if not hmac.compare_digest(join.token, self._token) or join.number in taken or join.number >= self.count:
            raise NotAMessage("a connection that is no rank's")
        rank.join = join

    def _take_messages(self, rank: Connected) -> None:
        while (message := rank.received.message()) is not None:
            reply, raw = message
            match reply:
                case Begin() | Phase():
                    rank.phase = reply.phase if isinstance(reply, Begin) else rank.requested
                    if rank.number == 0:
                        self.relay(reply)
                case Join():
                    raise NotAMessage("it has joined already")
                case Hello():
                    rank.hello = reply
                case Failed():
                    rank.failed = reply
                    self.in_order_of_failure.append(rank)
                case _:
                    rank.ended = isinstance(reply, Ended)
                    rank.replies.append((reply, raw))

    def _read_prints(self, launched: Launched) -> None:
        assert launched.process.stdout is not None
        try:
            chunk = os.read(launched.process.stdout.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(launched.process.stdout)
            return
        launched.printed += chunk
        del launched.printed[:-_KEPT_OF_PRINTS_BYTES]
        sys.stderr.buffer.write(chunk)
        sys.stderr.flush()
