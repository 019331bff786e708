"""What the tests' own server that streams writes: its answers in bytes, and ways in which they go wrong."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any


class Over(Exception):
    """The connection is to be closed."""


def choice(chat: bool, text: str, finish: str | None = None) -> dict[str, Any]:
    said = {"delta": {"content": text}} if chat else {"text": text}
    return {"object": "chunk", "choices": [{"index": 0, **said, "finish_reason": finish}]}


def whole(status: int, body: str, kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return (head + body).encode()


def chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event_of(data: str) -> bytes:
    return chunked(f"data: {data}\n\n".encode())


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"

ANSWERS: dict[str, bytes] = {
    "429": whole(429, '{"error": {"message": "too much\\u001b[2J to do"}}'),
    "500": whole(500, "out of memory"),
    "redirects": whole(302, "", more="Location: http://192.0.2.1/v1/completions\r\n"),
    "html": whole(200, "<p/>", "text/html"),
    "no http": b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
    "rubbish": HEAD + event_of('{"choices": [{"text": 7') + event_of("[DONE]") + END,
    "error": HEAD + event_of('{"error": {"message": "out of memory"}}') + event_of("[DONE]") + END,
    "ten megabytes": HEAD + event_of(json.dumps(choice(False, "x" * 10**7))) + END,
}
"""What is sent in place of an answer, by the fault."""

ENDLESS: dict[str, bytes] = {
    "silent": b"",
    "comments for ever": chunked(b": wait\n\n"),
    "tokens for ever": 8 * event_of(json.dumps(choice(False, " more"))),
}


async def goes_on_for_ever(piece: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD if piece else b"")
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.002)


async def goes_wrong_later(fault: str, writer: asyncio.StreamWriter) -> None:
    if fault in ("cut", "reset"):
        await asyncio.sleep(0.01)
        if fault == "reset":  # no orderly end: RST
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Over
    if fault == "stalls":
        await asyncio.sleep(30)
