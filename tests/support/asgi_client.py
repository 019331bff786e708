"""Requests to an ASGI application within this process: no server, no port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

HOST = "127.0.0.1:8321"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    application: Any, url: str, *, method: str = "GET", hosts: Sequence[str] = (HOST,), **headers: str
) -> Answer:
    path, _, query = url.partition("?")
    named = [*(("host", host) for host in hosts), *headers.items()]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in named],
        "server": ("127.0.0.1", 8321),
        "client": ("127.0.0.1", 50000),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    start, *rest = sent
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    assert len(found) == len(start["headers"]), "a header is sent twice"
    return Answer(start["status"], found, b"".join(message.get("body", b"") for message in rest))
