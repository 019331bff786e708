"""Servers of other protocols than OpenAI's, which refuse what their specifications refuse, and go wrong on request.

They are written from what the projects publish, and share no code with the client:

- Text Generation Inference: its OpenAPI document, ``docs/openapi.json`` of huggingface/text-generation-inference
  (``GenerateParameters``, ``StreamResponse``, ``StreamDetails``, ``ErrorResponse``).
- Ollama: ``docs/api.md``, ``docs/api/streaming.mdx`` and ``docs/api/errors.mdx`` of ollama/ollama.
- The Open Inference Protocol: ``specification/protocol/generate_rest.yaml`` of kserve/open-inference-protocol.
- Triton: ``docs/protocol/extension_generate.md`` of triton-inference-server/server, and ``docs/additional_outputs.md``
  of its vllm_backend.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from stream_faults import END, Over, chunked, whole
from stream_server import StreamingServer, Truth, now_ns

MODEL = "tiny"
PROMPT_TOKENS = 3


class Refused(Exception):
    def __init__(self, status: int, **body: str) -> None:
        super().__init__(status)
        self.status, self.body = status, body


def require(condition: object, status: int, **body: str) -> None:
    if not condition:
        raise Refused(status, **body)


@dataclass
class Task:
    """What a request asks for."""

    prompt: str
    tokens: int
    counted: bool = False


class Dialect(ABC):
    options = ""  # of the contestant, after the port
    kind = "text/event-stream"
    says_its_end = True

    @abstractmethod
    def task_of(self, path: str, asked: dict[str, Any]) -> Task: ...

    @abstractmethod
    def pieces(self, task: Task, words: list[str], finish: str) -> list[dict[str, Any]]:
        """Return a piece for each word, and those that end the answer."""

    @abstractmethod
    def error(self, message: str) -> dict[str, str]: ...

    def frame(self, piece: str) -> bytes:
        return f"data:{piece}\n\n".encode()


class Tgi(Dialect):
    options = ":api=tgi"

    def task_of(self, path: str, asked: dict[str, Any]) -> Task:
        assert path == "/generate_stream"
        parameters = asked.get("parameters", {})
        invalid = {"error": "Input validation error", "error_type": "validation"}
        require(isinstance(asked.get("inputs"), str), 422, **invalid)
        require((parameters.get("temperature") or 1.0) > 0 and parameters.get("temperature") != 0, 422, **invalid)
        require(parameters.get("do_sample", False) is False, 422, error="sampled", error_type="validation")
        return Task(asked["inputs"], parameters.get("max_new_tokens", 100))

    def pieces(self, task: Task, words: list[str], finish: str) -> list[dict[str, Any]]:
        found = []
        for place, word in enumerate(words, 1):
            token = {"id": place, "text": word, "logprob": -0.5, "special": False}
            found.append({"index": place, "token": token, "generated_text": None, "details": None})
        if finish == "stop":
            finish, last = "eos_token", {"id": 2, "text": "</s>", "logprob": -0.1, "special": True}
            found.append({"index": len(found) + 1, "token": last})
        details = {"finish_reason": finish, "generated_tokens": len(found), "seed": None, "input_length": PROMPT_TOKENS}
        found[-1] |= {"generated_text": "".join(words), "details": details}
        return found

    def error(self, message: str) -> dict[str, str]:
        return {"error": message, "error_type": "generation"}


class Ollama(Dialect):
    options = f":model={MODEL}:api=ollama"
    kind = "application/x-ndjson"

    def frame(self, piece: str) -> bytes:
        return f"{piece}\n".encode()

    def task_of(self, path: str, asked: dict[str, Any]) -> Task:
        require(asked.get("model") == MODEL, 404, error=f"model '{asked.get('model')}' not found")
        options = asked.get("options", {})
        require(options.get("temperature", 0.8) == 0 and options.get("repeat_penalty", 1.1) == 1, 400, error="sampled")
        assert asked.get("stream", True)
        return Task(self.prompt_of(path, asked), options.get("num_predict", 128))

    def prompt_of(self, path: str, asked: dict[str, Any]) -> str:
        assert path == "/api/generate"
        require(asked.get("raw") is True, 400, error="the prompt would be put into a template")
        return str(asked["prompt"])

    def said(self, text: str) -> dict[str, Any]:
        return {"response": text}

    def pieces(self, task: Task, words: list[str], finish: str) -> list[dict[str, Any]]:
        about = {"model": MODEL, "created_at": "2026-01-02T03:04:05.678901Z"}
        counts = {"total_duration": 9, "load_duration": 1, "prompt_eval_count": PROMPT_TOKENS, "eval_count": len(words)}
        last = {"done": True, "done_reason": finish, **counts, "prompt_eval_duration": 3, "eval_duration": 5}
        return [*({**about, **self.said(word), "done": False} for word in words), {**about, **self.said(""), **last}]

    def error(self, message: str) -> dict[str, str]:
        return {"error": message}


class OllamaChat(Ollama):
    def prompt_of(self, path: str, asked: dict[str, Any]) -> str:
        assert path == "/api/chat"
        require(all(isinstance(each["content"], str) for each in asked["messages"]), 400, error="not a text")
        return str(asked["messages"][0]["content"])

    def said(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text, "images": None}}


class OpenInference(Dialect):
    options = f":model={MODEL}:api=kserve"

    def task_of(self, path: str, asked: dict[str, Any]) -> Task:
        assert path == f"/v2/models/{MODEL}/generate_stream"
        require(isinstance(asked.get("text_input"), str), 422, error="Input validation error")
        unknown = {*asked} - {"text_input", "parameters"}
        require(not unknown, 422, error=f"unknown fields {unknown}")
        require(asked.get("parameters", {}).get("temperature") == 0, 422, error="sampled")
        return Task(asked["text_input"], asked["parameters"].get("max_tokens", 20))

    def about(self, text: str) -> dict[str, Any]:
        return {"model_name": MODEL, "model_version": "1", "text_output": text}

    def pieces(self, task: Task, words: list[str], finish: str) -> list[dict[str, Any]]:
        return [{**self.about(word), "done": place == len(words)} for place, word in enumerate(words, 1)]

    def error(self, message: str) -> dict[str, str]:
        return {"error": message}


class TritonVllm(OpenInference):
    """It counts tokens in each piece where it is asked to, and has no mark of an end."""

    says_its_end = False

    def task_of(self, path: str, asked: dict[str, Any]) -> Task:
        parameters = asked["parameters"]
        require(parameters.get("stream") is True, 400, error="stream is not set")
        return Task(asked["text_input"], parameters["max_tokens"], asked.get("return_num_output_tokens", False))

    def pieces(self, task: Task, words: list[str], finish: str) -> list[dict[str, Any]]:
        found = [self.about(word) for word in words]
        for place, each in enumerate(found if task.counted else [], 1):
            each |= {"num_output_tokens": 1, "finish_reason": finish if place == len(words) else "None"}
        return found


class TritonTensors(OpenInference):
    """Its length is an input of the model, and not a parameter, which it refuses."""

    says_its_end = False

    def task_of(self, path: str, asked: dict[str, Any]) -> Task:
        require("parameters" not in asked and "max_tokens" in asked, 400, error="input 'max_tokens' is missing")
        return Task(asked["text_input"], asked["max_tokens"])

    def pieces(self, task: Task, words: list[str], finish: str) -> list[dict[str, Any]]:
        return [self.about(word) for word in words]


class ProtocolServer(StreamingServer):
    """As the server of OpenAI's API, in another dialect. It knows some of its faults."""

    def __init__(self, dialect: Dialect, **behaviour: Any) -> None:
        super().__init__(**behaviour)
        self._dialect = dialect

    def at(self, options: str = "") -> str:
        return f"http://127.0.0.1:{self.port}{self._dialect.options}{options}"

    async def _stream(self, path: str, asked: dict[str, Any], writer: asyncio.StreamWriter, fault: str) -> None:
        dialect = self._dialect
        try:
            task = dialect.task_of(path, asked)
            require(fault != "429", 429, error="Model is overloaded")
        except Refused as refused:
            writer.write(whole(refused.status, json.dumps(refused.body)))
            return
        truth = Truth(task.prompt, now_ns())
        self.truths.append(truth)
        writer.write(_head(dialect.kind))
        is_half = fault in ("cut", "unfinished", "error", "rubbish", "stops")
        words = self._words(task.prompt, task.tokens, fault)[: task.tokens // 2 if is_half else None]
        pieces = dialect.pieces(task, words, "stop" if fault == "stops" else "length")
        for piece in pieces[: len(words) - 1] if is_half and fault != "stops" else pieces:
            await asyncio.sleep(self.behaviour.each_ms / 1e3)
            truth.tokens_ns.append(now_ns())
            writer.write(chunked(dialect.frame(json.dumps(piece))))
            await writer.drain()
        if fault == "cut":
            await asyncio.sleep(0.01)
            raise Over
        wrong = {"error": json.dumps(dialect.error("out\x1b[2J of memory\nfor good")), "rubbish": '{"'}
        if fault in wrong:
            writer.write(chunked(dialect.frame(wrong[fault])))
        writer.write(END)
        await writer.drain()


def _head(kind: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
