"""The server of a contestant such as ``torch:over=http``: FastAPI on uvicorn, one model, one process.

``python -m fairlap.worker.serving.model_server PARENT WRITE LISTEN``: the request to prepare comes on standard
input, replies go to the descriptor WRITE as those of a worker do, and the server listens on the bound socket LISTEN.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

from fairlap.machine.programs.guardian import end_with_parent
from fairlap.scenarios.asking import Reply
from fairlap.worker.failure import failure
from fairlap.worker.phases import NUMPY, OURS, Phases
from fairlap.worker.protocol import VERSION, Hello, Prepare, line_of, request_in

if TYPE_CHECKING:
    from fairlap.worker.service import Service

_KEEP_ALIVE_S = 24 * 3600  # a process may be frozen for long, and a kept connection must not be closed for that


def main() -> None:
    parent, write, listen = map(int, sys.argv[1:])
    end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for fd in (write, listen):
        os.set_inheritable(fd, False)
    with open(write, "wb") as replies:  # noqa: PTH123

        def send(reply: Reply) -> None:
            replies.write(line_of(reply))
            replies.flush()

        phases = Phases(send)
        try:
            send(Hello(VERSION, "python", os.getpid()))
            request = request_in(sys.stdin.buffer.readline())
            assert isinstance(request, Prepare)
            with phases(NUMPY):
                import numpy as np  # noqa: F401  (as in a worker)
            with phases(OURS):
                from fairlap.worker.service import Service

                service = Service(phases)
            prepared = service.prepare(request)
            with phases("serve"):
                server = _server_of(service, request)
            send(prepared)
        except Exception as error:
            send(failure(phases.now, error))
            os._exit(1)
    server.run(sockets=[socket.socket(fileno=listen)])
    os._exit(0)


def _server_of(service: Service, request: Prepare) -> Any:
    import uvicorn

    from fairlap.models.registry import spec_at
    from fairlap.worker.serving.model_application import ServedContestant, application

    served = ServedContestant(service.held.contestant, spec_at(request.workload, request.sizes), request.batch)
    return uvicorn.Server(
        uvicorn.Config(
            application(served),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_keep_alive=_KEEP_ALIVE_S,
        )
    )


if __name__ == "__main__":
    main()
