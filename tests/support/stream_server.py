"""A language model's server with known delays, which writes down when it wrote each token, and goes wrong on request.

It speaks HTTP/1.1 and OpenAI's API by hand, sharing no code with the client. ``with StreamingServer(first_ms=50) as
server`` runs it in a thread; ``in_a_process`` apart from the test's interpreter lock. Its times are those of
CLOCK_MONOTONIC_RAW, which all processes of a machine read alike.
"""

from __future__ import annotations

import asyncio
import json
import random
import shlex
import socket
import ssl
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from stream_faults import (
    ANSWERS,
    END,
    ENDLESS,
    HEAD,
    Over,
    choice,
    chunked,
    event_of,
    goes_on_for_ever,
    goes_wrong_later,
    whole,
)

READY = "port "
_ALL = 10**9


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


@dataclass
class Truth:
    """Of one request: when it had come, had a slot, and was about to have each of its tokens written."""

    prompt: str
    came_ns: int
    began_ns: int = 0
    tokens_ns: list[int] = field(default_factory=list)


@dataclass
class Behaviour:
    """``fault``, or several in turn, goes wrong with every ``fault_every``-th request from ``fault_from`` on."""

    first_ms: float = 0.0
    each_ms: float = 0.0
    tokens_in_events: tuple[int, ...] = (1,)  # repeated
    slots: int = _ALL  # answers at once; others wait in order
    in_turns: bool = False  # all that are open get one token after the other, each of which takes each_ms
    split: bool = False  # each event arrives in two packets
    comments: bool = False
    usage: str = "each"  # or end, none
    done: bool = True
    refused: tuple[str, ...] = ()  # fields of a request that it does not know
    key: str = ""
    remembers: str = ""  # answers, prefixes
    words: str = "w"
    counts_cache: bool = False  # the usage has how many words of a prompt were those of one before
    works_on: bool = False  # for clients that hung up
    small_buffers: bool = False  # an answer has a slot until its client has read nearly all of it
    padding: int = 0  # bytes of a comment before each event
    metrics: bool = False  # counts the same for Prometheus, and not in its answers
    exponential: bool = False  # delays are drawn, first_ms and each_ms on average
    fault: str = ""
    fault_from: int = 0
    fault_every: int = 1


class StreamingServer:
    def __init__(
        self, *, certificate: Path | None = None, host: str = "127.0.0.1", port: int = 0, **behaviour: Any
    ) -> None:
        self.behaviour = Behaviour(**behaviour)
        self.truths: list[Truth] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.host, self.port = host, port
        self._certificate = certificate
        self._seen: set[str] = set()
        self._read: list[list[str]] = []  # words of prompts
        self._queried = self._hit = 0
        self._random = random.Random(3)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> StreamingServer:
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, _kind: type | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def at(self, options: str = "") -> str:
        scheme = "http" if self._certificate is None else "https"
        return f"{scheme}://{self.host}:{self.port}/v1:model=m{options}"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda _loop, _context: None)  # connections break off on purpose
        self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()
        self._server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    async def _start(self) -> None:
        context = None
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
        self._slots, self._turn = asyncio.Semaphore(self.behaviour.slots), asyncio.Lock()
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=context, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.behaviour.small_buffers:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            writer.transport.set_write_buffer_limits(0)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                await self._answer(head[0], headers, body, writer)
        except (Over, OSError, EOFError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, line: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        method, path, _ = line.split(" ")
        if method == "GET":
            found = [asdict(each) for each in self.truths] if path == "/truth" else {"data": []}
            if path == "/metrics" and self.behaviour.metrics:
                writer.write(whole(200, self._metrics(), "text/plain"))
                return
            writer.write(whole(200, json.dumps(found)))
            return
        asked = json.loads(body)
        number = len(self.requests)
        self.requests.append((path, headers, asked))
        behaviour = self.behaviour
        if behaviour.key and headers.get("authorization") != f"Bearer {behaviour.key}":
            got = headers.get("authorization", "none")
            writer.write(whole(401, json.dumps({"error": {"message": f"wrong key: {got}"}})))
        elif unknown := next((name for name in behaviour.refused if name in str(asked)), ""):
            writer.write(whole(400, json.dumps({"error": {"message": f"unknown field {unknown}"}})))
        else:
            is_faulty = number >= behaviour.fault_from and number % behaviour.fault_every == 0
            faults = behaviour.fault.split(",")
            await self._stream(path, asked, writer, faults[number // behaviour.fault_every % len(faults)] * is_faulty)

    async def _stream(self, path: str, asked: dict[str, Any], writer: asyncio.StreamWriter, fault: str) -> None:
        prompt = asked["prompt"] if "prompt" in asked else asked["messages"][0]["content"]
        truth = Truth(prompt, now_ns())
        self.truths.append(truth)
        if fault in ENDLESS:
            await goes_on_for_ever(ENDLESS[fault], writer)
        if fault in ANSWERS:
            writer.write(ANSWERS[fault])
            return
        async with self._slots:
            truth.began_ns = now_ns()
            writer.write(HEAD)
            await self._tokens(path, asked, truth, writer, fault)
        if self.behaviour.done and fault != "unfinished":
            writer.write(event_of("[DONE]"))
        writer.write(END)
        await writer.drain()

    async def _tokens(
        self, path: str, asked: dict[str, Any], truth: Truth, writer: asyncio.StreamWriter, fault: str
    ) -> None:
        behaviour, tokens = self.behaviour, asked["max_tokens"]
        of_prompt = self._of_prompt(asked)
        slow = self._random.expovariate(1) if behaviour.exponential else 1.0
        known = truth.prompt in self._seen
        self._seen.add(truth.prompt)
        fast = 0.0 if known and behaviour.remembers else 1.0
        each_ms = behaviour.each_ms * (fast if behaviour.remembers == "answers" else 1.0)
        chat = "chat" in path
        words = self._words(truth.prompt, tokens, fault)
        last = tokens // 2 if fault in ("unfinished", "cut", "reset", "short", "stops", "stalls") else tokens
        if fault == "one token":
            last = 1
        if fault == "interrupted":
            last = tokens * 3 // 4
        began_s, sent, place = time.monotonic(), 0, 0
        while sent < last:
            count = min(behaviour.tokens_in_events[place % len(behaviour.tokens_in_events)], last - sent)
            place += 1
            due_s = began_s + slow * (behaviour.first_ms * fast + each_ms * (sent + count - 1)) / 1e3
            if behaviour.in_turns:
                async with self._turn:  # in the order in which they came
                    await asyncio.sleep(each_ms / 1e3)
            else:
                await asyncio.sleep(max(due_s - time.monotonic(), 0.0))
            truth.tokens_ns += [now_ns()] * count
            sent += count
            event = choice(chat, "".join(words[sent - count : sent]))
            if behaviour.usage == "each":
                event["usage"] = {"completion_tokens": sent, **of_prompt}
            await self._write_event(writer, json.dumps(event))
        await goes_wrong_later(fault, writer)
        if fault not in ("unfinished", "interrupted"):
            reason = "stop" if fault == "stops" else "length"
            writer.write(event_of(json.dumps(choice(chat, "", reason))))
        if behaviour.usage != "none":
            writer.write(event_of(json.dumps({"choices": [], "usage": {"completion_tokens": sent, **of_prompt}})))

    def _of_prompt(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not self.behaviour.counts_cache and not self.behaviour.metrics:
            return {"prompt_tokens": 3}
        texts = [asked["prompt"]] if "prompt" in asked else [each["content"] for each in asked["messages"]]
        words = " ".join(texts).split()
        cached = max((words_in_common(words, other) for other in self._read), default=0)
        self._read.append(words)
        self._queried, self._hit = self._queried + len(words), self._hit + cached
        if self.behaviour.metrics:
            return {"prompt_tokens": 3}
        return {"prompt_tokens": len(words), "prompt_tokens_details": {"cached_tokens": cached}}

    def _metrics(self) -> str:
        of_model = '{engine="0",model_name="m"}'
        return (
            f"# TYPE vllm:prefix_cache_queries counter\nvllm:prefix_cache_queries_total{of_model} {self._queried}.0\n"
            f"vllm:prefix_cache_hits_total{of_model} {self._hit}.0\n"
        )

    def _words(self, prompt: str, tokens: int, fault: str) -> list[str]:
        seed = zlib.crc32(b"" if fault == "same answers" else prompt.encode())
        return [f" {self.behaviour.words}{(seed + 7 * place) % 999_983}" for place in range(tokens)]

    async def _write_event(self, writer: asyncio.StreamWriter, data: str) -> None:
        if self.behaviour.works_on and writer.transport.is_closing():
            return
        if self.behaviour.comments or self.behaviour.padding:
            writer.write(chunked(b": still here" + b"." * self.behaviour.padding + b"\n\n"))
        if not self.behaviour.split:
            writer.write(event_of(data))
        else:
            event = f"data: {data}\n\n".encode()
            middle = len(event) // 2
            writer.write(chunked(event[:middle]))
            await writer.drain()
            await asyncio.sleep(0)
            writer.write(chunked(event[middle:]))
        try:
            await writer.drain()
        except OSError:
            if not self.behaviour.works_on:
                raise


def words_in_common(a: list[str], b: list[str]) -> int:
    """Count those that both begin with."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((place for place, (own, other) in pairs if own != other), min(len(a), len(b)))


@contextmanager
def in_a_process(*, on: Sequence[str] = (), **behaviour: Any) -> Iterator[StreamingServer]:
    """Run it apart; its truths are there when the process has ended.

    Where it runs on another host, ``on`` is the remote shell with the host, and ``host`` the host's address.
    """
    given = json.dumps(behaviour)
    command = [*on, sys.executable, __file__, shlex.quote(given) if on else given]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        found = StreamingServer(**behaviour)
        found.port = int(process.stdout.readline().removeprefix(READY))
        yield found
        process.stdin.write("\n")
        process.stdin.flush()
        found.truths += [Truth(**each) for each in json.loads(process.stdout.readline())]
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    with StreamingServer(**given) as server:
        print(f"{READY}{server.port}", flush=True)
        sys.stdin.readline()
        print(json.dumps([asdict(each) for each in server.truths]), flush=True)
