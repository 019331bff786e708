"""The documented messages are the ones in use, and anything else is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fairlap.request.fields.scale import Rank, Scale
from fairlap.scenarios.asking import Ask, Reply, at
from fairlap.scenarios.calls.latency_messages import Measured
from fairlap.scenarios.ranks.ranks_messages import PrepareCollectives
from fairlap.worker import protocol
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import REPLIES, REQUESTS, line_of, reply_in, request_in

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "worker-protocol.md"
MEASURED = {
    "type": "measured",
    "quantities": [{"name": "wall_ns", "count": 2, "method": "m", "resolution_ns": 10}],
    "calls_per_sample": 1,
    "stopped_by": "samples",
    "elapsed_s": 0.1,
    "bytes": 16,
}

PREPARE = protocol.Prepare("torch", "fairlap.bench_models.mlp", 4, 1, "weights", "inputs", "changed")
COLLECTIVES = PrepareCollectives("torch", 1, Scale(1, 2))


def documented() -> list[bytes]:
    blocks = re.findall(r"^```json\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line.encode() for block in blocks for line in block.splitlines()]


def tag(kind: type) -> str:
    return str(msgspec.inspect.type_info(kind).tag)  # type: ignore[attr-defined]


def test_every_documented_message_is_understood_and_every_message_is_documented() -> None:
    requests = {tag(kind) for kind in REQUESTS}
    seen = set()
    for line in documented():
        kind = msgspec.json.decode(line)["type"]
        seen.add(kind)
        message = request_in(line) if kind in requests else reply_in(line)
        again = request_in(line_of(message)) if kind in requests else reply_in(line_of(message))
        assert message == again
        assert set(msgspec.json.decode(line)) <= {"type", *message.__struct_fields__}
    assert seen == requests | {tag(kind) for kind in REPLIES}


def test_the_documented_version_is_the_one_in_use() -> None:
    assert PAGE.read_text().startswith(f"# The worker protocol, version {protocol.VERSION}\n")


def test_a_field_from_the_future_is_skipped() -> None:
    assert reply_in(b'{"type":"answered","seconds":1.0,"joules":3}') == protocol.Answered(1.0)


def test_a_message_is_one_line_whatever_its_text_holds() -> None:
    line = line_of(protocol.Failed("build", "exception", "two\nlines"))
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": 8},
        {"bytes": -16},
        {"quantities": [], "bytes": 0},
        {"quantities": [{"name": "wall_ns", "count": -1, "method": "m", "resolution_ns": 1}], "bytes": -8},
        {"quantities": [{"name": "wall_ns", "count": 2**40, "method": "m", "resolution_ns": 1}], "bytes": 2**43},
        {"calls_per_sample": 0},
        {"elapsed_s": "long"},
    ],
)
def test_a_measurement_that_contradicts_itself_is_refused(change: dict[str, object]) -> None:
    assert isinstance(reply_in(msgspec.json.encode(MEASURED)), Measured)
    with pytest.raises(msgspec.MsgspecError):
        reply_in(msgspec.json.encode({**MEASURED, **change}))


@pytest.mark.parametrize("line", [b"", b"\xff\xfe", b"[]", b"{}", b'{"type":"prepare"}', b'{"type":"hello"}', b"NaN"])
def test_anything_but_a_reply_is_refused(line: bytes) -> None:
    with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
        reply_in(line)


@pytest.mark.parametrize(
    ("first", "service"),
    [
        (PREPARE, ""),
        (msgspec.structs.replace(PREPARE, scale=Scale(1, 2)), "Conductor"),
        (COLLECTIVES, "CollectivesOfRanks"),
        (msgspec.structs.replace(COLLECTIVES, rank=Rank(0, 2, "host:1", ())), "CollectivesOfRank"),
    ],
)
def test_the_first_request_of_a_worker_names_what_serves_it(first: Ask[Any], service: str) -> None:
    assert first.service.rpartition(":")[2] == service
    assert not service or at(first.service).__name__ == service


TRIAL = b'{"type":"load_trial","kind":"lone","rate_per_s":1.0,"requests":3,"late":0,"outcome":"met",%s}'
REST = b'"unanswered":1,"served_per_s":1.0,"elapsed_s":3.0,"bytes":%d'


@pytest.mark.parametrize("bytes_of_stamps", [0, 4 * 32, 5 * 32])
def test_a_trial_of_load_has_all_stamps_of_its_requests_or_none(bytes_of_stamps: int) -> None:
    trial = reply_in(TRIAL % (REST % bytes_of_stamps))
    assert trial.raw_bytes == bytes_of_stamps


@pytest.mark.parametrize("bytes_of_stamps", [-32, 32, 4 * 32 + 8, 10**12])
def test_a_trial_of_load_whose_stamps_do_not_fit_its_requests_is_refused(bytes_of_stamps: int) -> None:
    with pytest.raises(msgspec.MsgspecError):
        reply_in(TRIAL % (REST % bytes_of_stamps))


def test_phases_of_what_is_built_once_more_are_not_sent() -> None:
    sent: list[Reply] = []
    phases = Phases(sent.append)
    with phases.unreported(), phases("build"):
        pass
    assert sent == []
    with phases("build"):
        pass
    assert [type(each).__name__ for each in sent] == ["Begin", "Phase"]
