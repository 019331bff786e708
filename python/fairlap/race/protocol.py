"""What parent and worker say to each other. docs/worker-protocol.md tells it for writers in other languages.

One JSON object per line, on two pipes that are neither standard input nor output. A message whose ``bytes`` is
above zero is followed by that many raw bytes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PROTOCOL_VERSION = 1


class Message(msgspec.Struct, tag_field="say", forbid_unknown_fields=False):
    """The base of all messages; ``say`` tells which one it is."""


class Hello(Message, tag="hello"):
    """Worker, first of all."""

    protocol: int
    language: str
    pid: int


class Prepare(Message, tag="prepare"):
    """Parent: load this model and be ready to run it. Files are safetensors; labels lie among the inputs."""

    framework: str
    adapter: str  # where Python finds it, as module:Class
    variant: str
    options: dict[str, str]
    model: str
    package: str  # where Python finds the model
    batch: int
    mode: str
    precision: str
    threads: int
    device: str
    weights_file: str
    inputs_file: str


class Phase(Message, tag="phase"):
    """Worker, whenever a part of its preparation has ended."""

    name: str
    seconds: float


class Prepared(Message, tag="prepared"):
    """Worker: the answer to ``prepare``."""

    version: str
    in_force: dict[str, str]
    weights_hash: str  # of what the framework holds; empty when it cannot tell


class Answer(Message, tag="answer"):
    """Parent: run once on these inputs and write the answer there, as safetensors."""

    inputs_file: str
    write_to: str


class Answered(Message, tag="answered"):
    """Worker: how long the call and its completion took."""

    seconds: float


class Measure(Message, tag="measure"):
    """Parent: time calls on the inputs that were given with ``prepare``."""

    seconds: float
    samples: int | None = None


class Laps(Message, tag="laps"):
    """Worker: the answer to ``measure``; float64 nanoseconds per call follow, little-endian, in order of time."""

    quantity: str  # wall_ns on a CPU; device_span_ns, ... on a device
    method: str
    resolution_ns: float
    calls_per_sample: int
    bytes: int
    stopped_by: str = ""
    warm_up: str = ""
    warm_up_s: float = 0.0
    per_call: dict[str, float] = {}
    warnings: list[str] = []


class Quit(Message, tag="quit"):
    """Parent: say goodbye and end."""


class Bye(Message, tag="bye"):
    """Worker, last of all."""

    memory_bytes: dict[str, int] = {}


class Failed(Message, tag="failed"):
    """Worker, instead of any answer. After it the worker ends."""

    phase: str
    kind: Literal["unsupported", "exception", "out_of_memory"]
    message: str
    traceback: str = ""


FromParent = Prepare | Answer | Measure | Quit
FromWorker = Hello | Phase | Prepared | Answered | Laps | Bye | Failed

encode = msgspec.json.Encoder().encode
"""A message as bytes; the caller adds the end of the line."""
