"""Traces of Mooncake and Azure are replayed when they say, as long as they say, with what requests have in common."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import here, refusal
from fairlap.errors import InvalidRequest
from fairlap.scenarios.streams.workload.sessions import Source
from fairlap.scenarios.streams.workload.trace import Trace, is_trace, read_trace
from machine_marks import needs
from published_schemas import checked
from stream_races import counts_of, raced, row_of
from stream_server import StreamingServer, words_in_common

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

MOONCAKE = """\
{"timestamp": 0, "input_length": 1300, "output_length": 7, "hash_ids": [0, 1, 2]}
{"timestamp": 20, "input_length": 1024, "output_length": 3, "hash_ids": [0, 1]}
{"timestamp": 100, "input_length": 600, "output_length": 5, "hash_ids": [0, 3]}
{"timestamp": 240, "input_length": 10, "output_length": 2, "hash_ids": [4]}
"""
AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:16:46.6805900,879,55"""
AZURE_2024 = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-05-10 00:00:00.009930+00:00,2162,5\r\n"
SERVER = "http://127.0.0.1:8000/v1:model=m"


def written(folder: Path, text: str, name: str = "trace.jsonl") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def source_of(trace: Trace, nonce: str = "nonce") -> Source:
    return Source((), trace, None, 0.0, nonce)


def test_a_trace_of_mooncake_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, MOONCAKE)
    assert is_trace(path)
    found = read_trace(path)
    assert found.at_s == pytest.approx([0, 0.02, 0.1, 0.24])
    assert found.input_tokens.tolist() == [1300, 1024, 600, 10]
    assert found.output_tokens.tolist() == [7, 3, 5, 2]
    assert found.blocks == ((0, 1, 2), (0, 1), (0, 3), (4,))


@pytest.mark.parametrize("text", [AZURE, AZURE.replace("\n", "\r\n"), "\ufeff" + AZURE, AZURE + "\n"])
def test_a_trace_of_azure_is_read(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text, "trace.csv")
    assert is_trace(path)
    found = read_trace(path)
    assert found.at_s == pytest.approx([0, 4.314579, 60], abs=1e-6)
    assert (found.input_tokens.tolist(), found.output_tokens.tolist()) == ([374, 396, 879], [44, 109, 55])
    assert found.blocks == ((), (), ())


def test_times_with_a_zone_are_read(tmp_path: Path) -> None:
    found = read_trace(written(tmp_path, AZURE_2024, "trace.csv"))
    assert (found.input_tokens.tolist(), found.length_s) == ([2162], 0.0)


def test_requests_out_of_order_are_put_in_order_and_lengths_alone_are_enough(tmp_path: Path) -> None:
    lines = MOONCAKE.splitlines()
    found = read_trace(written(tmp_path, "\n".join(reversed(lines))))
    assert found.output_tokens.tolist() == [7, 3, 5, 2]
    assert read_trace(written(tmp_path, '{"input_length": 5, "output_length": 6}')).at_s is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"timestamp": 0, "input_length": 0, "output_length": 7}', "t.jsonl"),
        ('{"timestamp": 0, "input_length": 5}', "t.jsonl"),
        ('{"timestamp": -1, "input_length": 5, "output_length": 7}', "t.jsonl"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 1000000}', "t.jsonl"),
        ('{"timestamp": 0, "input_length": 99999999999, "output_length": 1}', "t.jsonl"),
        ('{"timestamp": 0, "input_length": 513, "output_length": 7, "hash_ids": [1]}', "t.jsonl"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 7}\n{"input_length": 5, "output_length": 7}', "t.jsonl"),
        ("", "t.csv"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "t.csv"),
        ("a,b,c\n1,2,3", "t.csv"),
        (AZURE + "\nyesterday,3,4", "t.csv"),
        (AZURE + "\n2023-11-16 18:15:46,3", "t.csv"),
        (AZURE + "\n2023-13-16 18:15:46,3,4", "t.csv"),
        (AZURE + "\n2023-11-16 18:15:46,0,4", "t.csv"),
        (AZURE + "\n2023-11-16 18:15:46,x,4", "t.csv"),
    ],
)
def test_what_is_no_request_of_a_trace_is_refused(text: str, name: str, tmp_path: Path) -> None:
    assert refusal("load", written(tmp_path, text, name), "--on", SERVER).code == "E_PROMPTS"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (MOONCAKE, ["--shared-prefix", "30%"]),
        (MOONCAKE, ["--arrivals", "poisson"]),
        (MOONCAKE, ["--concurrency", 2, "--arrivals", "trace"]),
        ('{"timestamp": 0, "input_length": 5, "output_length": 7}', ["--rate", 5]),
        ('{"input_length": 5, "output_length": 7}', []),
        ('{"input_length": 5, "output_length": 7}', ["--rate", 5, "--arrivals", "trace"]),
        ('{"prompt": "a"}', ["--rate", 5, "--arrivals", "trace", "--tokens", 4]),
    ],
)
def test_what_a_trace_does_not_hold_is_not_made_up(text: str, options: list[Any], tmp_path: Path) -> None:
    assert refusal("load", written(tmp_path, text), "--on", SERVER, *options).code == "E_LOAD"


def test_stretches_follow_one_another_and_begin_again(tmp_path: Path) -> None:
    """The trace is 240 ms long up to its last request, and 320 ms with the mean gap after it."""
    trace = read_trace(written(tmp_path, MOONCAKE))
    assert trace.length_s == pytest.approx(0.32)
    numbers = [trace.stretch(place, 0.16)[1].tolist() for place in range(4)]
    assert numbers == [[0, 1, 2], [3], [0, 1, 2], [3]]
    assert trace.stretch(1, 0.16)[0] == pytest.approx([80e6])
    assert trace.stretch(5, 60)[1].tolist() == [0, 1, 2, 3]
    due_ns, _ = trace.stretch(0, 60)
    assert due_ns == pytest.approx([0, 20e6, 100e6, 240e6])


def test_a_rate_draws_the_times_of_a_trace_out(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, MOONCAKE))
    assert trace.rate_per_s == pytest.approx(12.5)
    due_ns, numbers = trace.stretch(0, 60, rate_per_s=1.25)
    assert due_ns == pytest.approx([0, 200e6, 1000e6, 2400e6])
    assert trace.stretch(0, 1.6, rate_per_s=1.25)[1].tolist() == [0, 1, 2]
    assert numbers.size == 4


def test_texts_have_a_word_for_each_token_and_begin_alike_as_hash_ids_say(tmp_path: Path) -> None:
    source = source_of(read_trace(written(tmp_path, MOONCAKE)))
    texts = [str(each.first.prompt).split() for each in source.sessions(4, 1, numbers=np.arange(4))]
    assert [len(each) for each in texts] == [1300, 1024, 600, 10]
    assert texts[0][:1024] == texts[1]
    assert words_in_common(texts[0], texts[2]) in range(512, 516)  # a word in 276 is the same by chance
    assert words_in_common(texts[0], texts[3]) < 4
    again = source.sessions(4, 1, numbers=np.arange(4))
    assert [each.first.prompt for each in again] == [" ".join(each) for each in texts]
    assert source.trace is not None
    first = np.arange(1)
    others = [source.sessions(1, 2, numbers=first), source_of(source.trace, "x").sessions(1, 1, numbers=first)]
    assert max(words_in_common(str(other.first.prompt).split(), texts[0]) for [other] in others) < 4


def test_lengths_of_a_trace_may_come_at_a_rate_and_are_new_each_time(tmp_path: Path) -> None:
    source = source_of(read_trace(written(tmp_path, '{"input_length": 50, "output_length": 6}')))
    first, second = (str(each.first.prompt) for each in source.sessions(2, 1))
    assert len(first.split()) == len(second.split()) == 50
    assert words_in_common(first.split(), second.split()) < 4


RECORDED: dict[str, Any] = {"rate": None, "trial": None, "tokens": None}


def test_a_replay_asks_what_was_recorded_when_it_was_recorded(tmp_path: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(counts_cache=True))
    found = raced(written(tmp_path, MOONCAKE), server, **RECORDED)
    bodies = [body for _, _, body in server.requests[-4:]]
    assert [body["max_tokens"] for body in bodies] == [7, 3, 5, 2]
    assert [len(body["prompt"].split()) for body in bodies] == [1300, 1024, 600, 10]
    came_ms = np.array([each.came_ns for each in server.truths[-4:]]) / 1e6
    assert (came_ms - came_ms[0] > np.array([0, 20, 100, 240]) - 20).all()
    assert came_ms[-1] - came_ms[0] < 5000
    assert row_of(found, server).outcome == "finished"
    counts = counts_of(found, server)
    assert (counts.requests, counts.answered, counts.tokens) == (4, 4, 17)
    assert counts.prompt_tokens == 2934
    assert counts.cached_tokens is not None
    assert 1024 + 512 <= counts.cached_tokens < 1024 + 512 + 20


def test_a_server_that_ignores_recorded_lengths_is_not_ranked(tmp_path: Path, servers: ExitStack) -> None:
    cheat = servers.enter_context(StreamingServer(fault="short", fault_from=10))
    [row] = raced(written(tmp_path, MOONCAKE), cheat, **RECORDED).rows
    assert row.code == "E_OTHER_LENGTH"


def test_the_command_replays_a_trace_of_azure_at_a_rate(tmp_path: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer())
    path = written(tmp_path, AZURE, "trace.csv")
    options = ("--rate", 30, "--blocks", 1, "--quiet", "--json", "--no-store")
    done = here("load", path, "--on", server.at(), *options)
    document = checked(done.stdout)
    load = document["plan"]["works"][0]["streams"]
    assert (load["arrivals"], load["rate_per_s"], load["lengths"], load["shared_prefix"]) == ("trace", 30, "file", None)
    assert document["processes"][0]["streams"]["figures"]["counts"]["tokens"] == 44 + 109 + 55


def test_a_trace_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_trace(tmp_path / "no.csv")
    assert raised.value.code == "E_PROMPTS"
