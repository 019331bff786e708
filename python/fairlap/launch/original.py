"""A user's model as its kind reads it, alive in a separate process: what contestants' answers to fed data should be."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
from collections.abc import Mapping

import msgspec

from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.launch.opened_source import process_of_source
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.sources.answering import Answered, answers_beside
from fairlap.models.sources.confinement import LIMIT_S
from fairlap.models.sources.contract import SourceError
from fairlap.models.spec import Tolerance
from fairlap.request.fields.source import Source

_END_S = 5.0


class Original:
    """The process starts with the first question and ends with ``close``, or with this process."""

    def __init__(self, source: Source, passed: tuple[str, ...] = ()) -> None:
        self._source, self._passed = source, passed
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch = ScratchFolder()

    def answers(self, inputs: Arrays) -> tuple[Arrays, Mapping[str, Tolerance]]:
        """In float64, and how far a right float32 computation may be from them."""
        file = self._scratch.path / "inputs.safetensors"
        safetensors.write(file, inputs)
        answered = self._asked(f"{file}\n".encode())
        if answered.code:
            raise SourceError(answered.message, code=answered.code)
        return safetensors.read(answers_beside(file)), answered.tolerances

    def close(self) -> None:
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.terminate()
                self._process.wait()
            self._process = None
        self._scratch.remove()

    def _asked(self, line: bytes) -> Answered:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                if not selector.select(LIMIT_S):
                    message = f"{self._source.text} did not answer within {LIMIT_S / 60:.0f} minutes"
                    raise SourceError(message, code="E_TIMEOUT")
            return msgspec.json.decode(process.stdout.readline(), type=Answered)
        except (BrokenPipeError, *NOT_THE_DOCUMENT):
            raise SourceError(f"{self._source.text} ended the process that computes its answers") from None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            module = "fairlap.models.sources.answering"
            self._process = process_of_source(module, errors=subprocess.DEVNULL, passed=self._passed)
            assert self._process.stdin is not None
            self._process.stdin.write(msgspec.json.encode(self._source) + b"\n")
        return self._process
