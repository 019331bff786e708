"""Several client processes that share each load: on this machine, or one on each machine of a Ray cluster.

This process deals the load out, compares the clocks before and after, and merges what the clients measured. Sessions
are drawn here, so together the clients offer exactly the load that one would. A client that is lost takes only its own
requests with it; those that are left share later loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from fairlap import quantity_text
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.launch.cluster.called_program import CalledProgram, ProgramHere, ProgramLost
from fairlap.launch.cluster.ray_cluster import cluster_named
from fairlap.request.fields.load import MOST_WORKERS
from fairlap.scenarios.streams.clients.client import Certificates, now_ns
from fairlap.scenarios.streams.floor.client_floor import FloorTimes
from fairlap.scenarios.streams.issue import OfClient, Served
from fairlap.scenarios.streams.race import client_program
from fairlap.scenarios.streams.scenario import E_CLIENT_LOST
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.several_clients.client_names import E_CLIENTS, clients_named
from fairlap.scenarios.streams.several_clients.clock_offset import ClockOffset, compared
from fairlap.scenarios.streams.several_clients.load_share import Dealt, LoadShare, dealt
from fairlap.scenarios.streams.several_clients.merged_load import merged
from fairlap.scenarios.streams.several_clients.messages import (
    ANSWERS,
    ENCODER,
    Answer,
    Begin,
    Call,
    Check,
    ClockRead,
    Describe,
    Description,
    Disconnect,
    FloorMeasured,
    Measured,
    MeasureFloor,
    Prepare,
    ReadClock,
    Refused,
)
from fairlap.version import __version__

_Found = TypeVar("_Found")
_MODULE = client_program.__name__
_ANSWERS_WITHIN_S = 60.0
_SPARE_S = 120.0  # of a load, besides how long its client gives itself
_BEGINS_AFTER_NS = 100_000_000  # so that all know by then when to begin


class NoClientLeft(FairlapError):
    code = E_CLIENT_LOST


@dataclass
class ClientGroup:
    """``lost`` has a line for each client that was lost in the middle of a load."""

    announce: Callable[[str], None]
    programs: dict[str, CalledProgram]  # of clients that are there, by their names
    elsewhere: frozenset[str] = frozenset()  # those on other machines
    lost: list[str] = field(default_factory=list)
    _threads: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(max(len(self.programs), 1))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for program in self.programs.values():
            program.close()

    def require(self, server: StreamServer, certificates: Certificates) -> None:
        """Raise what any of them would lack to ask the server."""
        is_here = server.start is not None or (server.address is not None and server.address.is_loopback)
        if is_here and (name := min(self.elsewhere, default="")):
            raise InvalidRequest(
                f"the client {name} is on another machine, from which {server.name} is not reached; give the server's "
                "address on the network",
                code=E_CLIENTS,
            )
        call = Check(_plain(server), certificates)
        for name, answer in self._answers(dict.fromkeys(self.programs, call)).items():
            if isinstance(answer, Refused):
                raise InvalidRequest(f"{name}: {answer.message}", code=answer.code)

    def disconnect(self, server: StreamServer) -> None:
        self._answers(dict.fromkeys(self.programs, Disconnect(server.name)))

    def offer(self, load: LoadShare) -> Served:
        """Let them share it. Those that are lost before it begins leave their share to the others."""
        load = replace(load, server=_plain(load.server))
        while True:
            if load.connections > (most := MOST_WORKERS * len(self._living())):
                raise NoClientLeft(f"the clients that are left have at most {most} connections")
            shares = dict(zip(self._living(), dealt(load, len(self.programs)), strict=False))
            clocks = self._clocks(shares)
            self._answers({name: Prepare(each.share) for name, each in shares.items()})
            if all(name in self.programs for name in shares):
                return self._served(load, shares, clocks)

    def _served(self, load: LoadShare, shares: Mapping[str, Dealt], before: Mapping[str, ClockOffset]) -> Served:
        begins_ns = now_ns() + _BEGINS_AFTER_NS
        calls = {name: Begin(round(before[name].there_ns(begins_ns))) for name in shares}
        answers = self._answers(calls, _most_s(load))
        for name, answer in answers.items():
            if not isinstance(answer, Measured):
                own, of_all = len(shares[name].places), quantity_text.count(len(load.sessions), "request")
                why = answer.message if isinstance(answer, Refused) else answer
                self.lost.append(f"the client {name} was lost: {why}; its {own:,} of {of_all} are not counted")
        after = self._clocks(shares)
        parts = [
            (shares[name], OfClient(name, answer.served, before[name].including(after.get(name, before[name]))))
            for name, answer in answers.items()
            if isinstance(answer, Measured)
        ]
        self._living()
        return merged(parts)

    def floors(self, loads: Mapping[str, tuple[LoadShare, int]]) -> dict[str, FloorTimes]:
        """Let each client load its own null server, all at once as in the load; without those that cannot."""
        calls = {name: MeasureFloor(replace(share, server=_plain(share.server)), pieces)
                 for name, (share, pieces) in loads.items() if name in self.programs}  # fmt: skip
        most_s = max((_most_s(share) for share, _ in loads.values()), default=_SPARE_S)
        found = self._answers(calls, most_s)
        return {name: each.times for name, each in found.items() if isinstance(each, FloorMeasured)}

    def _clocks(self, names: Mapping[str, object]) -> dict[str, ClockOffset]:
        """One after the other: a thread that waits for another one is taken for a slow way."""
        found = {}
        for name in [each for each in names if each in self.programs]:
            [clock] = self._waited_for([self._threads.submit(self._compared, name)])
            if clock is not None:
                found[name] = clock
        return found

    def _compared(self, name: str) -> ClockOffset | None:
        program, call = self.programs[name], ENCODER.encode(ReadClock())

        def ask() -> tuple[int, int]:
            read = ANSWERS.decode(program.call(call, _ANSWERS_WITHIN_S))
            assert isinstance(read, ClockRead)
            return read.came_ns, read.left_ns

        try:
            return compared(ask, now_ns)
        except ProgramLost as error:
            self._forget(name, error)
            return None

    def _answers(
        self, calls: Mapping[str, Call], within_s: float = _ANSWERS_WITHIN_S
    ) -> dict[str, Answer | ProgramLost]:
        """Ask them at once. One that is lost, or cannot do what it must, is forgotten."""
        asked = {
            name: self._threads.submit(partial(_answer, self.programs[name], call, within_s))
            for name, call in calls.items()
            if name in self.programs
        }
        found = dict(zip(asked, self._waited_for(list(asked.values())), strict=True))
        for name, answer in found.items():
            if isinstance(answer, ProgramLost):
                self._forget(name, answer)
            elif isinstance(answer, Refused) and not isinstance(calls[name], Check):
                self._forget(name, ProgramLost(answer.message))
        return found

    def _waited_for(self, asked: Sequence[Future[_Found]]) -> list[_Found]:
        """End all clients at an interrupt: what they do is not wanted any more, and they answer nothing meanwhile."""
        try:
            return [each.result() for each in asked]
        except BaseException:
            self.close()
            self.programs.clear()
            raise

    def _forget(self, name: str, why: ProgramLost) -> None:
        if (program := self.programs.pop(name, None)) is not None:
            program.close()
            self.announce(f"the client {name} was lost: {why}")

    def _living(self) -> list[str]:
        if not self.programs:
            raise NoClientLeft("no client is left")
        return list(self.programs)


@contextmanager
def sharing_clients(asked: str, announce: Callable[[str], None]) -> Iterator[ClientGroup]:
    """Start as many processes here, or one on each node of the named cluster that has processors."""
    asked = clients_named(asked)  # also one of a plan from elsewhere
    with ExitStack() as stack:
        programs: list[tuple[str, CalledProgram]] = []
        if asked.isdecimal():
            programs += [("", stack.enter_context(closing(ProgramHere(_MODULE)))) for _ in range(int(asked))]
        else:
            cluster = stack.enter_context(closing(cluster_named(asked)))
            for node in cluster.nodes():
                programs.append((node.name, stack.enter_context(closing(cluster.program(node, _MODULE)))))
        yield stack.enter_context(closing(ClientGroup(announce, *_described(programs, announce))))


def _described(
    programs: Sequence[tuple[str, CalledProgram]], announce: Callable[[str], None]
) -> tuple[dict[str, CalledProgram], frozenset[str]]:
    """Name those that take part by their hosts, and say which are on other machines than this process."""
    threads = ThreadPoolExecutor(max(len(programs), 1))
    try:
        ask = partial(_answer, call=Describe(), within_s=_ANSWERS_WITHIN_S)
        answers = list(threads.map(lambda each: ask(each[1]), programs))
    finally:  # an interrupt does not wait for a node that has no room yet
        threads.shutdown(wait=False, cancel_futures=True)
    found: list[tuple[Description, CalledProgram]] = []
    for (node, program), answer in zip(programs, answers, strict=True):
        if isinstance(answer, Description) and answer.fairlap == __version__:
            found.append((answer, program))
            continue
        announce(f"the client {node} is left out: {_why_left_out(answer)}")
    if not found:
        raise InvalidRequest("no client could be started on any machine", code=E_CLIENTS)
    hosts = Counter(each.host for each, _ in found)
    named, elsewhere = {}, set()
    for place, (each, program) in enumerate(found):
        number = 1 + sum(other.host == each.host for other, _ in found[:place])
        name = each.host if hosts[each.host] == 1 else f"{each.host} ({number})"
        named[name] = program
        elsewhere |= {name} if each.machine != client_program.machine_here() else set()
    return named, frozenset(elsewhere)


def _why_left_out(answer: Answer | ProgramLost) -> str:
    if isinstance(answer, Description):
        return f"it has fairlap {answer.fairlap}, and this process {__version__}"
    return str(answer)


def _answer(program: CalledProgram, call: Call, within_s: float) -> Answer | ProgramLost:
    try:
        return ANSWERS.decode(program.call(ENCODER.encode(call), within_s))
    except ProgramLost as error:
        return error


def _plain(server: StreamServer) -> StreamServer:
    """Without what is this process's alone."""
    return replace(server, function=None, start=None)


def _most_s(load: LoadShare) -> float:
    longest = max(len(each.tokens) for each in load.sessions)
    return float(load.due_ns.max()) / 1e9 + 3 * load.lasts_s + longest * load.server.timeout_s + _SPARE_S
