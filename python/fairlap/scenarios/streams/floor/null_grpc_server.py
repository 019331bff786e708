"""What null_server is by HTTP, by gRPC: a program that answers at once, and says of each piece when it was written.

The model's name is the number of pieces. It ends when its standard input does, and prints its port.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fairlap.frameworks.adapter_parts.grpc.channel import grpc_module
from fairlap.frameworks.adapter_parts.grpc.messages import STREAM, messages, parsed

_MOST_AT_ONCE = 256


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def _answer(request: bytes, _context: Any) -> Iterator[bytes]:
    came_ns = _now_ns()
    for place in range(int(parsed(messages().Request, request).model_name)):
        stamps = f"{_now_ns()} " if place else f"{came_ns} {_now_ns()} "
        piece = messages().Answer()
        for name, datatype in (("text_output", "BYTES"), ("num_output_tokens", "UINT32")):
            piece.outputs.add(name=name, datatype=datatype, shape=(1,))
        piece.outputs[0].contents.bytes_contents.append(stamps.encode())
        piece.outputs[1].contents.uint_contents.append(1)
        yield messages().StreamedAnswer(answer_or_model_version=piece.SerializeToString()).SerializeToString()


def main() -> None:
    grpc: Any = grpc_module()

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            return grpc.unary_stream_rpc_method_handler(_answer) if details.method == STREAM else None

    server = grpc.server(ThreadPoolExecutor(_MOST_AT_ONCE), handlers=(Handler(),), options=[("grpc.so_reuseport", 0)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
