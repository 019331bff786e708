"""A language model's server by gRPC with known delays, which writes down when it wrote each token, and goes wrong.

It speaks KServe's protocol as Triton does, or as MLServer, with messages written by hand: it shares no code with the
client but grpcio itself, on its asyncio side. Certificates are as of stream_server.
"""

from __future__ import annotations

import asyncio
import json
import struct
import threading
import time
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from protobuf_by_hand import all_of, field, fields_in, message, text_of, varints_in
from stream_server import Truth, now_ns

SERVICE = "/inference.GRPCInferenceService/"
_MAX_SEND = [("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)]


@dataclass
class GrpcBehaviour:
    """``like``: how a stream's answers are wrapped. ``fault`` goes wrong with every ``fault_every``-th request."""

    first_ms: float = 0.0
    each_ms: float = 0.0
    like: str = "triton"  # or mlserver
    raw: bool = False  # tensors' contents apart from the tensors
    counts: bool = True
    marks_end: bool = True  # as Triton does
    refused: tuple[str, ...] = ()  # inputs that it does not know
    key: str = ""
    has_live: bool = True
    fault: str = ""
    fault_from: int = 0
    fault_every: int = 1


class GrpcStreamingServer:
    def __init__(self, *, certificate: Path | None = None, port: int = 0, **behaviour: Any) -> None:
        self.behaviour = GrpcBehaviour(**behaviour)
        self.truths: list[Truth] = []
        self.requests: list[dict[str, Any]] = []
        self.port = port
        self._certificate = certificate
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready, self._over = threading.Event(), asyncio.Event()

    def __enter__(self) -> GrpcStreamingServer:
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, _kind: type | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def at(self, options: str = "") -> str:
        return f"grpc{'' if self._certificate is None else 's'}://127.0.0.1:{self.port}:model=m{options}"

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    async def _serve(self) -> None:
        import grpc

        server = grpc.aio.server(options=_MAX_SEND)
        server.add_generic_rpc_handlers((_handlers(self),))
        if self._certificate is None:
            self.port = server.add_insecure_port(f"127.0.0.1:{self.port}")
        else:
            pem = self._certificate.read_bytes()
            self.port = server.add_secure_port(f"127.0.0.1:{self.port}", grpc.ssl_server_credentials([(pem, pem)]))
        await server.start()
        self._ready.set()
        await self._over.wait()
        await server.stop(0)

    async def answer(self, data: bytes, context: Any) -> AsyncIterator[bytes]:
        import grpc

        behaviour, number = self.behaviour, len(self.requests)
        asked = read_request(data)
        self.requests.append({**asked, "metadata": dict(context.invocation_metadata())})
        if behaviour.key and self.requests[-1]["metadata"].get("authorization") != f"Bearer {behaviour.key}":
            got = self.requests[-1]["metadata"].get("authorization", "none")
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, f"wrong key: {got}")
        if unknown := next((each for each in behaviour.refused if each in asked["inputs"]), ""):
            if behaviour.like == "triton":
                yield message((1, f"unexpected inference input '{unknown}'"), (2, message((3, "1"))))
                return
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unexpected {unknown}")
        is_faulty = number >= behaviour.fault_from and number % behaviour.fault_every == 0
        faults = behaviour.fault.split(",")
        fault = faults[number // behaviour.fault_every % len(faults)] * is_faulty
        if fault.isupper():
            await context.abort(getattr(grpc.StatusCode, fault), "so it\x1b[2J is")
        if fault == "error":
            yield message((1, "out of memory"))
            return
        if fault == "silent":
            await asyncio.sleep(30)
        async for piece in self._tokens(asked, fault, context):
            yield piece

    async def _tokens(self, asked: dict[str, Any], fault: str, context: Any) -> AsyncIterator[bytes]:
        import grpc

        truth = Truth(asked["text"], now_ns(), now_ns())
        self.truths.append(truth)
        tokens = asked["tokens"]
        halves = ("cut", "stalls", "unfinished", "short", "gone")
        last = tokens // 2 if fault in halves else 10**9 if fault == "tokens for ever" else tokens
        seed, began_s = zlib.crc32(asked["text"].encode()), time.monotonic()
        for place in range(last):
            due_s = began_s + (self.behaviour.first_ms + self.behaviour.each_ms * place) / 1e3
            await asyncio.sleep(max(due_s - time.monotonic(), 0.0))
            truth.tokens_ns.append(now_ns())
            text = "x" * 2 * 10**6 if fault == "two megabytes" else f" w{(seed + 7 * place) % 999_983}"
            yield b"\xff\xff" if fault == "rubbish" else self._piece(text, is_last=False)
        if fault == "cut":
            await asyncio.sleep(0.01)
            await context.abort(grpc.StatusCode.INTERNAL, "out of memory")
        if fault == "gone":
            await asyncio.sleep(0.01)
            self._over.set()
            await asyncio.sleep(30)
        if fault == "stalls":
            await asyncio.sleep(30)
        if self.behaviour.like == "triton" and self.behaviour.marks_end and fault != "unfinished":
            yield message((2, message((1, "m"), (4, _parameter(True)))))

    def _piece(self, text: str, *, is_last: bool) -> bytes:
        behaviour = self.behaviour
        values: list[tuple[str, str, bytes, bytes]] = [
            ("text_output", "BYTES", field(8, text), struct.pack("<I", len(text)) + text.encode())
        ]
        if behaviour.counts:
            values.append(("num_output_tokens", "UINT32", field(4, b"\x01"), struct.pack("<I", 1)))
        tensors = [
            message((1, name), (2, kind), (3, b"\x01"), *([] if behaviour.raw else [(5, contents)]))
            for name, kind, contents, _ in values
        ]
        raw = [(6, each[3]) for each in values] if behaviour.raw else []
        marked = behaviour.like == "triton" and behaviour.marks_end
        end = [(4, _parameter(is_last))] if marked else []
        answer = message((1, "m"), (2, "1"), *end, *((5, each) for each in tensors), *raw)
        return answer if behaviour.like == "mlserver" else message((2, answer))


def _parameter(is_last: bool) -> bytes:
    return message((1, "triton_final_response"), (2, message((1, int(is_last)))))


def _handlers(server: GrpcStreamingServer) -> Any:
    import grpc

    async def stream(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            async for piece in server.answer(request, context):
                yield piece

    async def live(_request: bytes, _context: Any) -> bytes:
        return message((1, 1))

    class Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            if details.method == f"{SERVICE}ModelStreamInfer":
                return grpc.stream_stream_rpc_method_handler(stream)
            if details.method == f"{SERVICE}ServerLive" and server.behaviour.has_live:
                return grpc.unary_unary_rpc_method_handler(live)
            return None

    return Handlers()


def read_request(data: bytes) -> dict[str, Any]:
    """Read what a load asks: its prompt, and its length wherever it is."""
    inputs = {text_of(each, 1): b"".join(all_of(each, 5)) for each in all_of(data, 5)}
    parameters = {text_of(each, 1): fields_in(b"".join(all_of(each, 2))) for each in all_of(data, 4)}
    sampling = json.loads(text_of(inputs["sampling_parameters"], 8)) if "sampling_parameters" in inputs else {}
    tokens = sampling.get("max_tokens")
    if tokens is None and "max_tokens" in inputs:
        [tokens] = varints_in(all_of(inputs["max_tokens"], 2))
    if tokens is None:
        [(_, tokens)] = parameters["max_tokens"]
    return {
        "model": text_of(data, 1),
        "version": text_of(data, 2),
        "inputs": sorted(inputs),
        "text": text_of(inputs["text_input"], 8),
        "sampling": sampling,
        "parameters": sorted(parameters),
        "tokens": tokens,
    }
