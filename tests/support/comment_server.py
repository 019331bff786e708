"""A server on the loopback interface that keeps comments as GitHub's does, and fails as asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_a1B2c3D4e5F6"
BOT = {"login": "github-actions[bot]", "type": "Bot"}


class CommentServer:
    """``fails`` is what happens to a method: a status, "hang", "rubbish", "close", or a redirection's address."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.fails: dict[str, int | str] = {}
        self.requests: list[tuple[str, str, str]] = []  # method, path, authorization
        self.released = threading.Event()
        self.address = ""

    def add(self, body: str, user: dict[str, str] | None = None) -> int:
        number = 1000 + len(self.comments)
        self.comments.append({"id": number, "body": body, "user": user or BOT})
        return number


class _Server(ThreadingHTTPServer):
    def __init__(self, kept: CommentServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kept = kept


class _Handler(BaseHTTPRequestHandler):
    @property
    def _kept(self) -> CommentServer:
        assert isinstance(self.server, _Server)
        return self.server.kept

    def log_message(self, *_: Any) -> None:
        """Not into the output of the tests."""

    def _answer(self, content: Any, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _fails(self) -> bool:
        self._kept.requests.append((self.command, self.path, self.headers.get("Authorization", "")))
        failure = self._kept.fails.get(self.command)
        match failure:
            case None:
                return False
            case int():
                self._answer({"message": f"no; you sent {self.headers['Authorization']}"}, failure)
            case "hang":
                self._kept.released.wait(30)
            case "rubbish":
                self._answer(b"<html>\xff\xfe gateway</html>")
            case "other":
                self._answer({"message": "an object where a list should be"} if self.command == "GET" else [1])
            case "close":
                self.close_connection = True
            case _:
                self._answer({}, 302, Location=str(failure))
        return True

    def do_GET(self) -> None:
        if self._fails():
            return
        query = parse_qs(urlsplit(self.path).query)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        self._answer(self._kept.comments[(page - 1) * size : page * size])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        if not self._fails():
            self._answer({"id": self._kept.add(body), "html_url": f"{self._kept.address}/comment"}, 201)

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        if not self._fails():
            [found] = [each for each in self._kept.comments if str(each["id"]) == self.path.rpartition("/")[2]]
            found["body"] = body
            self._answer({"id": found["id"], "html_url": f"{self._kept.address}/comment"})


@contextmanager
def comment_server() -> Iterator[CommentServer]:
    kept = CommentServer()
    server = _Server(kept)
    kept.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield kept
    finally:
        kept.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
