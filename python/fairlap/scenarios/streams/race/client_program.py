"""A client process of several: it asks a server its share of a load, and says what its own clock showed.

``python -m fairlap.scenarios.streams.race.client_program`` answers the calls of ``messages``.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairlap.errors import FairlapError
from fairlap.launch.cluster.called_program import answer_calls
from fairlap.scenarios.streams.clients.client import Client, now_ns
from fairlap.scenarios.streams.clients.client_of_server import connected, require_client
from fairlap.scenarios.streams.floor.client_floor import FloorTimes, floor_times
from fairlap.scenarios.streams.floor.known_server import known_server, server_known
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.servers import credential_of
from fairlap.scenarios.streams.several_clients.load_share import LoadShare
from fairlap.scenarios.streams.several_clients.messages import (
    CALLS,
    ENCODER,
    Answer,
    Begin,
    Call,
    Check,
    ClockRead,
    Describe,
    Description,
    Disconnect,
    Done,
    FloorMeasured,
    Measured,
    MeasureFloor,
    Prepare,
    ReadClock,
    Refused,
)
from fairlap.version import __version__

_BOOT, _NETWORK = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/net")
_SPIN_NS = 1_000_000  # at the end of a wait, which a sleep may overshoot by as much


@dataclass
class ClientProgram:
    _stack: ExitStack = field(default_factory=ExitStack)  # until the process ends
    _connections: dict[str, list[Client]] = field(default_factory=dict)  # by the name of the server
    _null_ports: dict[bool, int] = field(default_factory=dict)  # by whether by gRPC
    _prepared: tuple[LoadShare, list[Client]] | None = None

    def answer(self, call: Call) -> Answer:
        """Refuse what the user can mend; anything else ends the process, which is then lost."""
        try:
            return self._answer(call)
        except FairlapError as error:
            return Refused(error.code, str(error))

    def _answer(self, call: Call) -> Answer:
        match call:
            case Describe():
                return Description(socket.gethostname(), machine_here(), __version__)
            case Check(server, certificates):
                require_client(server)
                credential_of(server)
                certificates.context()
            case Prepare(share):
                self._prepared = (share, self._connected(share))
            case Begin(at_ns):
                return Measured(self._begun(at_ns))
            case MeasureFloor(share, pieces):
                return FloorMeasured(self._floor(share, pieces))
            case Disconnect(name):
                self._disconnect(name)
            case ReadClock():
                return ClockRead(now_ns(), now_ns())
        return Done()

    def _connected(self, share: LoadShare) -> list[Client]:
        clients = self._connections.setdefault(share.server.name, [])
        return connected(clients, share.connections, share.server, share.certificates, share.most_tokens)

    def _disconnect(self, name: str) -> None:
        for client in self._connections.pop(name, []):
            client.close()

    def _begun(self, at_ns: int) -> Served:
        assert self._prepared is not None
        share, clients = self._prepared
        while (left_ns := at_ns - now_ns()) > 0:
            time.sleep(max(left_ns - _SPIN_NS, 0) / 1e9)
        return share.served_by(clients)

    def _floor(self, share: LoadShare, pieces: int) -> FloorTimes:
        by_grpc = share.server.is_by_grpc
        if by_grpc not in self._null_ports:
            self._null_ports[by_grpc] = self._stack.enter_context(known_server(by_grpc=by_grpc))
        null = server_known(share.server, self._null_ports[by_grpc], pieces)
        known = replace(share, server=null, fields="forced")
        try:
            return floor_times(known.served_by(self._connected(known)))
        finally:
            self._disconnect(null.name)


def machine_here() -> str:
    """Name it by what has one loopback: containers of one kernel may each have their own."""
    try:
        return f"{_BOOT.read_text().strip()} {_NETWORK.readlink()}"
    except OSError:
        return socket.gethostname()


def main() -> None:
    program = ClientProgram()
    answer_calls(lambda call: ENCODER.encode(program.answer(CALLS.decode(call))))


if __name__ == "__main__":
    main()
