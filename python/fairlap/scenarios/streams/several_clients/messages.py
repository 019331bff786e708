"""What a client process is asked, and what it answers; arrays are their raw bytes, so that no digit is lost."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.floor.client_floor import FloorTimes
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.scenarios.streams.several_clients.load_share import LoadShare


class Describe(msgspec.Struct, frozen=True, tag="describe"):
    """Answered by a ``Description``."""


class ReadClock(msgspec.Struct, frozen=True, tag="clock"):
    """Answered by ``ClockRead``."""


class Check(msgspec.Struct, frozen=True, tag="check"):
    """Whether this server could be asked, without asking it: ``Done`` or ``Refused``."""

    server: StreamServer
    certificates: Certificates


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Open the connections: ``Done``."""

    share: LoadShare


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """Offer what was prepared when the process's own clock shows this: ``Measured``."""

    at_ns: int


class MeasureFloor(msgspec.Struct, frozen=True, tag="floor"):
    """Offer this to a null server in place of its own, which answers in so many pieces: ``FloorMeasured``."""

    share: LoadShare
    pieces: int


class Disconnect(msgspec.Struct, frozen=True, tag="disconnect"):
    """End the connections to the server of this name: ``Done``."""

    server: str


class Description(msgspec.Struct, frozen=True, tag="description"):
    host: str
    machine: str  # the same for all processes of one machine
    fairlap: str


class ClockRead(msgspec.Struct, frozen=True, tag="clock_read"):
    came_ns: int
    left_ns: int


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    served: Served


class FloorMeasured(msgspec.Struct, frozen=True, tag="floor_measured"):
    times: FloorTimes


class Done(msgspec.Struct, frozen=True, tag="done"):
    pass


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    code: str
    message: str


Call = Describe | ReadClock | Check | Prepare | Begin | MeasureFloor | Disconnect
Answer = Description | ClockRead | Measured | FloorMeasured | Done | Refused


def _encoded(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    raise NotImplementedError(type(value))


def _decoded(_kind: type, value: Any) -> Any:
    """Read an array; nothing else of the messages has a type that is not msgspec's."""
    dtype, raw = value
    return np.frombuffer(raw, dtype)


ENCODER = msgspec.msgpack.Encoder(enc_hook=_encoded)
CALLS: msgspec.msgpack.Decoder[Call] = msgspec.msgpack.Decoder(Call, dec_hook=_decoded)
ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer, dec_hook=_decoded)
