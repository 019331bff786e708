"""A server that answers at once, and says of each piece when it was written: what is left of a time is the client's.

It runs as a process of its own with the standard library alone, and ends when its standard input does. It prints its
port. A request to ``/EVENTS/...`` is answered with so many events of OpenAI's API, the first of which says too when the
request had come whole. Times are those of CLOCK_MONOTONIC_RAW, which all processes of a machine read alike.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from typing import BinaryIO

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_BACKLOG = 1024


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def _chunk(data: str) -> bytes:
    event = f"data: {data}\n\n"
    return f"{len(event):x}\r\n{event}\r\n".encode()


def _event(stamps: str, count: int) -> bytes:
    used = f'{{"completion_tokens": {count}, "prompt_tokens": 1}}'
    return _chunk(f'{{"choices": [{{"index": 0, "text": "{stamps} ", "finish_reason": null}}], "usage": {used}}}')


def _answer(connection: socket.socket, events: int, came_ns: int) -> None:
    connection.sendall(_HEAD)
    for place in range(events):
        stamps = f"{_now_ns()}" if place else f"{came_ns} {_now_ns()}"
        connection.sendall(_event(stamps, place + 1))
    connection.sendall(_chunk("[DONE]") + b"0\r\n\r\n")


def _request(incoming: BinaryIO) -> bytes:
    """Return its path, once all of it has come; empty where none comes any more."""
    line, length = incoming.readline(), 0
    while (header := incoming.readline()) not in (b"\r\n", b""):
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    incoming.read(length)
    return line.split(b" ")[1] if line else b""


def _serve(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        with connection, connection.makefile("rb") as incoming:
            while path := _request(incoming):
                came_ns = _now_ns()
                _, events, asked = path.split(b"/", 2)
                if asked == b"models":
                    connection.sendall(_EMPTY)
                else:
                    _answer(connection, int(events), came_ns)
    except OSError:
        pass  # the client closed it


def _accept(listening: socket.socket) -> None:
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as at_loopback:
        threading.Thread(target=_accept, args=(at_loopback,), daemon=True).start()
        print(at_loopback.getsockname()[1], flush=True)
        sys.stdin.read()
    os._exit(0)
