"""The Python worker: one contestant in a process of its own. ``python -m fairlap.race.worker --read FD --write FD``"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from fairlap.errors import described
from fairlap.race import protocol
from fairlap.race.own_process import die_with_the_parent, memory_in_use, take_cores

_decode = msgspec.json.Decoder(protocol.FromParent).decode


# How frameworks say it when their own allocators find none.
_NO_MEMORY = ("bad_alloc", "can't allocate memory", "Cannot allocate memory", "RESOURCE_EXHAUSTED", "Out of memory")


class Worker:
    """Answers one request after another. Whatever a framework raises is told, and ends the worker."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests = requests
        self._answers = answers
        self._phase = "start"
        self._contestant: Any = None
        self._call: Callable[[], Any] | None = None
        self._inputs_file = ""

    def run(self) -> None:
        self._say(protocol.Hello(protocol.PROTOCOL_VERSION, "python", os.getpid()))
        for line in self._requests:
            request = _decode(line)
            self._phase = type(request).__name__.lower()
            if isinstance(request, protocol.Prepare):
                self._say(self._prepare(request))
            elif isinstance(request, protocol.Answer):
                self._say(self._answer(request))
            elif isinstance(request, protocol.Measure):
                self._measure(request)
            else:
                self._say(protocol.Bye(memory_in_use(self._contestant)))
                return

    def tell_failure(self, error: BaseException) -> None:
        from fairlap.frameworks.contract import Unsupported

        kind: Any = "exception"
        if isinstance(error, Unsupported):
            kind = "unsupported"
        elif isinstance(error, MemoryError) or any(words in _text_of(error) for words in _NO_MEMORY):
            kind = "out_of_memory"
        message = _text_of(error) if kind == "unsupported" else described(error)
        self._say(protocol.Failed(self._phase, kind, message, _traceback_of(error)))

    def _say(self, message: protocol.Message, raw: bytes | memoryview = b"") -> None:
        self._answers.write(protocol.encode(message) + b"\n")
        self._answers.write(raw)
        self._answers.flush()

    @contextmanager
    def _timed_phase(self, name: str) -> Iterator[None]:
        outer, self._phase = self._phase, name
        began = time.perf_counter()
        yield
        self._say(protocol.Phase(name, time.perf_counter() - began))
        self._phase = outer

    def _prepare(self, request: protocol.Prepare) -> protocol.Prepared:
        with self._timed_phase("import"):  # every framework here loads NumPy; its users wait for that too
            import numpy  # noqa: F401
        from fairlap.frameworks.contract import Settings
        from fairlap.frameworks.registry import framework_at
        from fairlap.race.worker_materials import workload_of
        from fairlap.workloads.hashing import hash_of

        framework = framework_at(request.adapter)()
        work = workload_of(request)
        wanted = Settings(request.threads, request.variant, request.device, request.options)
        self._contestant = framework.prepare(work, wanted, self._timed_phase)
        with self._timed_phase("bind"):
            self._call = self._contestant.bind(work.inputs)
        self._inputs_file = request.inputs_file
        return protocol.Prepared(
            framework.version(), dict(self._contestant.in_force), hash_of(self._contestant.weights())
        )

    def _answer(self, request: protocol.Answer) -> protocol.Answered:
        from fairlap.race.worker_materials import inputs_in
        from fairlap.workloads import safetensors

        call, done = self._call, self._contestant.done
        if request.inputs_file != self._inputs_file:
            call = self._contestant.bind(inputs_in(Path(request.inputs_file))[0])
        assert call is not None, "answer before prepare"
        began = time.perf_counter()
        result = call()
        if done is not None:
            done(result)
        seconds = time.perf_counter() - began
        safetensors.write(Path(request.write_to), self._contestant.outputs(result))
        return protocol.Answered(seconds)

    def _measure(self, request: protocol.Measure) -> None:
        from fairlap.engine import time_calls
        from fairlap.race.counted import counts_per_call

        result = time_calls(
            self._call, done=self._contestant.done, seconds=request.seconds, samples=request.samples, name="contestant"
        )
        quantity = result.headline
        samples = memoryview(quantity.samples).cast("B")
        laps = protocol.Laps(
            quantity=quantity.name,
            method=quantity.method,
            resolution_ns=quantity.resolution_ns,
            calls_per_sample=result.calls_per_sample,
            bytes=samples.nbytes,
            stopped_by=result.stopped_by,
            warm_up=str(result.warm_up),
            warm_up_s=result.warm_up.elapsed_s,
            per_call=counts_per_call(result),
            warnings=[notice.text for notice in result.warnings],
        )
        self._say(laps, samples)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _traceback_of(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-20_000:]
    except Exception:
        return ""


def main(arguments: list[str]) -> int:
    """What a framework prints must not be taken for an answer: standard output becomes standard error."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    die_with_the_parent(int(options["--parent"]))
    take_cores(options.get("--cores", ""), options.get("--memory", ""))
    os.dup2(2, 1)
    with os.fdopen(int(options["--read"]), "rb") as requests, os.fdopen(int(options["--write"]), "wb") as answers:
        worker = Worker(requests, answers)
        try:
            worker.run()
        except BrokenPipeError:
            return 1  # the parent is gone, and nobody listens
        except BaseException as error:
            worker.tell_failure(error)
            if isinstance(error, SystemExit | KeyboardInterrupt):
                raise
            return 1
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # frameworks hang or abort in their destructors now and then; everything is said by now
