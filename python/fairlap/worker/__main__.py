"""One contestant's process: ``python -m fairlap.worker --read FD --write FD --parent PID``.

Or one of its ranks: ``python -m fairlap.worker --connect HOST:PORT``.

It speaks the protocol of docs/reference/worker-protocol.md over the two inherited descriptors, or over the connection,
never over standard output, which frameworks print on. Nothing expensive is imported before the first request.
"""

from __future__ import annotations

from fairlap.worker.early_clock import wait_until_calibrated  # first: it calibrates while the others are imported

# isort: split
import faulthandler
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, Protocol

from fairlap.machine.programs.guardian import CLIENT, TOKEN, guarded
from fairlap.scenarios.asking import Reply, at
from fairlap.worker.guardian import die_with_connection
from fairlap.worker.phases import NUMPY, OURS, Phases
from fairlap.worker.protocol import VERSION, Ended, Hello, Prepare, Quit, Request, line_of, request_in


class Server(Protocol):
    def reply(self, request: Request) -> tuple[Reply, Sequence[memoryview]]: ...


def main() -> None:
    options = _options()
    wait_until_calibrated()
    with _rank_streams(options) if isinstance(options, str) else _streams(options) as (requests, replies, holds):
        faulthandler.enable()

        def send(reply: Reply, raw: Sequence[memoryview] = ()) -> None:
            replies.write(line_of(reply))
            for samples in raw:
                replies.write(samples)
            replies.flush()

        phases = Phases(send)
        try:
            send(Hello(VERSION, "python", os.getpid(), holds))
            _serve(requests, send, phases)
        except ConnectionError:
            os._exit(1)  # the parent has ended
        except Exception as error:
            from fairlap.worker.failure import failure

            failed = failure(phases.now, error)
            sys.stderr.write(failed.traceback)
            send(failed)
        _leave()


@contextmanager
def _streams(options: _Options) -> Iterator[tuple[BinaryIO, BinaryIO, bool]]:
    """Open requests and replies, and find whether this process holds everything that it starts."""
    options = _moved(options) if options.read == 0 else options
    for fd in (options.read, options.write):
        os.set_inheritable(fd, False)
    if os.getppid() != options.parent:
        os._exit(1)
    holds_orphans = guarded(options.read, _remove_containers)
    with open(options.read, "rb") as requests, open(options.write, "wb") as replies:  # noqa: PTH123
        yield requests, replies, holds_orphans


def _moved(options: _Options) -> _Options:
    """Leave nothing on standard input, and what is printed on standard output with the errors, as in a container."""
    read, write = os.dup(options.read), os.dup(options.write)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return options._replace(read=read, write=write)


def _remove_containers() -> None:
    """Of a contestant that starts some; fairlap does it too, unless it was killed."""
    if CLIENT not in os.environ:
        return
    from fairlap.machine.programs.containers import remove_containers_of

    remove_containers_of(os.environ, os.environ.get(TOKEN, ""))


@contextmanager
def _rank_streams(address: str) -> Iterator[tuple[BinaryIO, BinaryIO, bool]]:
    from fairlap.worker.ranks.joining import joined

    connection = joined(address)
    die_with_connection(connection.fileno())
    with connection, connection.makefile("rb") as requests, connection.makefile("wb") as replies:
        yield requests, replies, False


def _serve(requests: BinaryIO, send: Callable[..., None], phases: Phases) -> None:
    service: Server | None = None
    for line in requests:
        request = request_in(line)
        service = service or _service(phases, request)
        send(*service.reply(request))
        if isinstance(request, Quit):
            return


class ServiceAlone:
    """Serves requests of a scenario that need no contestant."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    def reply(self, request: Request) -> tuple[Reply, tuple[()]]:
        if isinstance(request, Quit):
            return Ended(), ()
        self._phases.now = request.text
        reply: Reply = at(request.served_alone_by)(request)
        return reply, ()


def _service(phases: Phases, first: Request) -> Server:
    confinement = _confinement(phases, first)
    with phases(NUMPY):
        import numpy as np  # noqa: F401  (needed by fairlap and by every framework)
    with phases(OURS):
        if first.service:
            service: Server = at(first.service)(phases)
            return service
        if first.served_alone_by:
            return ServiceAlone(phases)
        from fairlap.worker.service import Service

        return Service(phases, confinement)


def _confinement(phases: Phases, first: Request) -> dict[str, str]:
    if not isinstance(first, Prepare) or first.sandbox is None:
        return {}
    from fairlap.worker.confinement import confined

    phases.now = "prepare"
    return confined(first.sandbox)


def _leave() -> None:
    """Exit at once: the exit handlers of frameworks take time and can hang or abort."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class _Options(NamedTuple):
    read: int
    write: int
    parent: int


def _options() -> _Options | str:
    """Or where a rank connects to. Parsed by hand: importing a parser would take a fifth of the import time."""
    words = sys.argv[1:]
    if words[:1] == ["--connect"] and len(words) == 2:
        return words[1]
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    try:
        return _Options(int(pairs["--read"]), int(pairs["--write"]), int(pairs["--parent"]))
    except (KeyError, ValueError):
        sys.exit("This is fairlap's worker, which `fairlap compare` starts with --read FD --write FD --parent PID.")


if __name__ == "__main__":
    main()
