"""A contestant behind a server, ``torch:over=http``: the server is a process of this worker's, and a call is a request.

What such a contestant takes longer than the same one without a server is the cost of serving it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.frameworks.adapter_parts.http.http_options import HttpOptions, http_options_in, without_http_options
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.models.modes import MODES
from fairlap.models.workload import Workload
from fairlap.scenarios.asking import Prepared
from fairlap.worker.failure import FailedElsewhere
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Begin, Failed, Hello, Phase, Prepare, line_of, reply_in

OPTION, HTTP = "over", "http"
SERVER_MODULES = ("fastapi", "uvicorn")
SERVER_PACKAGES = ("fastapi>=0.110", "uvicorn>=0.29")
SERVED_AT = "/v2/models/served"
_HOST = "127.0.0.1"
_ENDED_WITHIN_S = 1.0


def over_http_in(options: Mapping[str, str]) -> HttpOptions | None:
    """None for a contestant without a server. Raise InvalidRequest for an invalid choice."""
    if OPTION not in options:
        return None
    if options[OPTION] != HTTP:
        raise InvalidRequest(f"{OPTION} must be {HTTP} (got {options[OPTION]})")
    return http_options_in(options)


def without_server(options: Mapping[str, str]) -> dict[str, str]:
    """Keep the framework's options; ``tensors`` and ``timeout`` are its own if there is no server."""
    if OPTION not in options:
        return dict(options)
    return {name: value for name, value in without_http_options(options).items() if name != OPTION}


class OwnServer:
    """The process that holds the model.

    It ends with the worker: it is in its session, and the kernel kills it when the worker's main thread is gone.
    """

    def __init__(self, request: Prepare, phases: Phases) -> None:
        self._phases = phases
        options = over_http_in(request.options)
        assert options is not None
        self._options = options
        request = msgspec.structs.replace(request, options=without_server(request.options))
        if not MODES[request.mode].answers_inputs or request.device != "cpu":
            raise Unsupported(f"{OPTION}={HTTP} is for inference on the CPU")
        began_s = time.perf_counter()
        replies = self._start()
        with replies:
            self.prepared = self._prepared(request, replies, began_s)

    def contestant(self, work: Workload) -> Contestant:
        from fairlap.frameworks.adapter_parts.http.client import HttpClient
        from fairlap.request.fields.server_address import ServerAddress

        address = ServerAddress(_HOST, self._port, SERVED_AT)
        with self._phases("connect"):
            client = HttpClient(address, self._options, work.spec, work.batch)
        return Contestant(
            bind=lambda inputs: self._watched(client.bind(inputs)),
            done=None,
            outputs=client.outputs,
            weights=dict,
            in_force={**self.prepared.in_force, "over": HTTP, "server": client.protocol.server, **client.in_force},
            work_in="own_server",
        )

    def _start(self) -> BinaryIO:
        """Start the server on a port that is bound here, so that it is known before the server is up."""
        read, write = os.pipe()
        with socket.socket() as listening:
            listening.bind((_HOST, 0))
            listening.listen()
            self._port = listening.getsockname()[1]
            inherited = (write, listening.fileno())
            ends = (str(os.getpid()), *map(str, inherited))
            command = [sys.executable, "-P", "-m", "fairlap.worker.serving.model_server", *ends]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=inherited)
        os.close(write)
        return open(read, "rb")  # noqa: PTH123

    def _prepared(self, request: Prepare, replies: BinaryIO, began_s: float) -> Prepared:
        """Its phases are those of the contestant."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as requests:
            requests.write(line_of(request))
        for line in replies:
            match reply_in(line):
                case Hello():
                    self._phases.relay(Phase("interpreter", time.perf_counter() - began_s))
                case Begin() | Phase() as reply:
                    self._phases.relay(reply)
                case Prepared() as prepared:
                    return prepared
                case Failed() as failed:
                    raise FailedElsewhere(failed)
        raise ServerFailed(f"the server of the contestant did not start{self._end_text()}")

    def _watched(self, call: Callable[[], Any]) -> Callable[[], Any]:
        def ask() -> Any:
            try:
                return call()
            except ServerFailed as error:
                raise ServerFailed(f"{error}{self._end_text()}") from None

        return ask

    def _end_text(self) -> str:
        """How the process ended; empty while it runs."""
        try:
            status = self._process.wait(timeout=_ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            return ""
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return f"; its process ended with {how}"
