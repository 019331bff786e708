"""Answers prompts with a model of one framework, one after the other, in OpenAI's API on the loopback.

``python -m fairlap.scenarios.streams.in_process.program FRAMEWORK FOLDER PORT DEVICE`` is the process of a contestant.
It is asked by the client that asks servers, so that all are timed by the same rule. One thread runs the model, and
writes each token to the connection itself; requests wait for it in the order in which they came.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any

from fairlap.errors import described
from fairlap.scenarios.streams.in_process.token_model import Answer, TokenModel

MODELS = {
    "transformers": "transformers_model:TransformersModel",
    "onnxruntime-genai": "genai_model:GenAiModel",
}
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_BACKLOG = 512


class _Request:
    def __init__(self, asked: dict[str, Any], to: Any, *, is_chat: bool) -> None:
        self.asked, self.to, self.is_chat = asked, to, is_chat
        self.is_over = threading.Event()

    def write(self, event: dict[str, Any]) -> None:
        self._write(json.dumps(event))

    def _write(self, text: str) -> None:
        data = f"data: {text}\n\n".encode()
        self.to.write(b"%x\r\n%b\r\n" % (len(data), data))

    def begin(self) -> None:
        self.to.write(_HEAD)

    def end(self) -> None:
        self._write("[DONE]")
        self.to.write(_END)

    def choice(self, text: str, finish: str | None = None) -> dict[str, Any]:
        said: dict[str, Any] = {"delta": {"content": text}} if self.is_chat else {"text": text}
        return {"index": 0, **said, "finish_reason": finish}


class ProgramServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()

    def handle_error(self, _request: Any, _address: Any) -> None:
        """Print nothing of a client that went away."""

    def answer_all(self, model: TokenModel) -> None:
        while True:
            request = self.requests.get()
            try:
                _answer(model, request)
            except ConnectionError:
                request.to.close()
            finally:
                request.is_over.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ProgramServer

    def log_message(self, *_words: object) -> None: ...

    def do_GET(self) -> None:
        self._say(200)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if asked.get("temperature") != 0 or not asked.get("stream"):
            self._say(400, "answers are greedy (temperature 0) and streamed")
            return
        request = _Request(asked, self.wfile, is_chat=self.path.endswith("/chat/completions"))
        self.server.requests.put(request)
        request.is_over.wait()

    def _say(self, status: int, why: str = "") -> None:
        body = json.dumps({"error": {"message": why}} if why else {}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _answer(model: TokenModel, request: _Request) -> None:
    request.begin()
    try:
        answer = Answer(model, request.asked)
        used = {"prompt_tokens": len(answer.prompt)}
        for count, text in enumerate(answer.pieces(), 1):
            request.write({"choices": [request.choice(text)], "usage": {**used, "completion_tokens": count}})
        request.write({"choices": [request.choice("", answer.finish)]})
    except ConnectionError:  # the client went away
        raise
    except Exception as error:  # of the framework: its reason is the answer
        request.write({"error": {"message": described(error)}})
    request.end()


def main() -> None:
    framework, folder, port, device = sys.argv[1:]
    module, _, name = MODELS[framework].partition(":")
    server = ProgramServer(int(port))  # the port is taken before the model is loaded, which takes long
    kind: type[TokenModel] = getattr(import_module(f"fairlap.scenarios.streams.in_process.{module}"), name)
    model = kind.load(folder, device)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.answer_all(model)


if __name__ == "__main__":
    main()
