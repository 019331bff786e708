"""One contestant's process: ``python -m fairlap.worker --read FD --write FD --parent PID``.

It speaks the protocol of docs/reference/worker-protocol.md over the two inherited descriptors and never over standard
output, which frameworks print on. Nothing heavy is imported before the parent says what to prepare.
"""

from __future__ import annotations

from fairlap.worker.early_clock import wait_until_calibrated  # first: it works while the others are imported

# isort: split
import faulthandler
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from fairlap.scenarios.latency import Feed, Measure
from fairlap.worker.guardian import die_with_parent
from fairlap.worker.phases import NUMPY, OURS, Phases
from fairlap.worker.protocol import VERSION, Answer, Hello, Prepare, Quit, Reply, line_of, request_in

if TYPE_CHECKING:
    from fairlap.worker.service import Service


def main() -> None:
    given = _given()
    for fd in (given.read, given.write):
        os.set_inheritable(fd, False)
    wait_until_calibrated()
    die_with_parent(given.parent, given.read)
    faulthandler.enable()
    with open(given.read, "rb") as requests, open(given.write, "wb") as replies:  # noqa: PTH123

        def tell(reply: Reply, raw: Sequence[memoryview] = ()) -> None:
            replies.write(line_of(reply))
            for samples in raw:
                replies.write(samples)
            replies.flush()

        phases = Phases(tell)
        try:
            tell(Hello(VERSION, "python", os.getpid()))
            _serve(requests, tell, phases)
        except BrokenPipeError:
            os._exit(1)  # the parent is gone; nobody is left to tell
        except Exception as error:
            from fairlap.worker.failure import failure

            told = failure(phases.now, error)
            sys.stderr.write(told.traceback)
            tell(told)
        _leave()


def _serve(requests: BinaryIO, tell: Callable[..., None], phases: Phases) -> None:
    service: Service | None = None
    for line in requests:
        request = request_in(line)
        if service is None:
            with phases(NUMPY):
                import numpy as np  # noqa: F401  (needed by fairlap and by every framework)
            with phases(OURS):
                from fairlap.worker.service import Service

                service = Service(phases)
        match request:
            case Prepare():
                tell(service.prepare(request))
            case Answer():
                tell(service.answer(request))
            case Feed():
                tell(service.feed(request))
            case Measure():
                tell(*service.measure(request))
            case Quit():
                tell(service.quit())
                return


def _leave() -> None:
    """At once: what frameworks do at exit can hang or abort, takes time, and is nothing to learn from."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class _Given(NamedTuple):
    read: int
    write: int
    parent: int


def _given() -> _Given:
    """By hand: a parser's import would take a fifth of what is imported here."""
    words = sys.argv[1:]
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    try:
        return _Given(int(pairs["--read"]), int(pairs["--write"]), int(pairs["--parent"]))
    except (KeyError, ValueError):
        sys.exit("This is fairlap's worker; `fairlap compare` starts it, with --read FD --write FD --parent PID.")


if __name__ == "__main__":
    main()
