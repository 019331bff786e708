"""Starts the process of a benchmark and speaks with it, from a worker that races it or a process that lists it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairlap.errors import shortened
from fairlap.frameworks.contract_parts.called_programs import ContestantFailed
from fairlap.frameworks.suites.tools import ASV
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.machine.programs.orphans import in_own_session

LONGEST_START_S = 600.0  # of imports, setup and warm-up
_MOST_PRINTED = 4096
_MOST_REPLY = 64 * 2**20


class BenchmarkFailed(ContestantFailed):
    """A benchmark of a suite cannot be imported, set up or called."""

    code = reported = "E_BENCHMARK"


class BenchmarkSkipped(BenchmarkFailed):
    """A benchmark says that it cannot run here."""


class Reply(msgspec.Struct):
    """What a benchmark's process replies; which fields it has depends on what was asked."""

    error: str = ""
    skipped: str | None = None
    kind: str = ""
    unit: str = ""
    timeout_s: float | None = None
    from_side: bool = True
    value: float | None = None
    peak_bytes: int = 0
    found: tuple[Listed, ...] = ()
    broken: tuple[Broken, ...] = ()
    root: str = ""  # to which the names of tests are relative


class Listed(msgspec.Struct, frozen=True):
    name: str
    kind: str
    module: str  # with asv the module's name, with pytest its file
    tags: tuple[str, ...] = ()


class Broken(msgspec.Struct, frozen=True):
    name: str
    why: str


class Member(msgspec.Struct, frozen=True):
    """One benchmark of a suite; without a name, all of them."""

    tool: str
    suite: str  # its folder or file
    name: str = ""
    module: str = ""
    root: str = ""

    @property
    def is_timed(self) -> bool:
        """Whether it measures a time, by the name that it has in asv."""
        return self.tool != ASV or self.name.partition("(")[0].rpartition(".")[2].lower().startswith("time")


class BenchmarkProcess:
    """``side`` is the folder that is searched first. ``within`` its worker it shares the worker's session."""

    def __init__(
        self,
        mode: str,
        member: Member,
        side: str,
        *,
        python: str | Path = sys.executable,
        environment: Mapping[str, str] | None = None,
        within: bool = False,
    ) -> None:
        replies, for_replies = os.pipe()
        for_requests, requests = os.pipe()
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115  (as long as this object)
        self._replies, self._requests, self._rest = replies, requests, b""
        scratch = ScratchFolder()
        weakref.finalize(self, scratch.remove)
        pipes = {"replies": for_replies, "requests": for_requests}
        options = {**msgspec.structs.asdict(member), "side": side, "scratch": str(scratch.path), **pipes}
        words = [str(python), "-P", "-m", "fairlap.frameworks.suites.child", mode, json.dumps(options)]
        keywords: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": self._printed,
            "stderr": subprocess.STDOUT,
            "cwd": scratch.path if member.tool == ASV else None,  # as asv has it
            "env": environment,
            "pass_fds": (for_replies, for_requests),
        }
        self._within = within
        try:
            self._process = (
                subprocess.Popen(words, **keywords) if within else in_own_session(words, guarded=False, **keywords)
            )
        finally:
            os.close(for_replies)
            os.close(for_requests)

    def reply(self, within_s: float = LONGEST_START_S) -> Reply:
        """Wait for a reply. Raises BenchmarkFailed, or BenchmarkSkipped where the benchmark does not run here."""
        ends_s = time.monotonic() + within_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._replies], [], [], max(ends_s - time.monotonic(), 0.0))
            if not ready:
                self.end()
                raise BenchmarkFailed(f"it did not end within {within_s:g} s")
            read = os.read(self._replies, 65536)
            if not read or len(self._rest) > _MOST_REPLY:
                raise self._died()
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            found = msgspec.json.decode(line, type=Reply)
        except msgspec.MsgspecError as error:
            raise BenchmarkFailed(f"its process replied with something else: {error}") from None
        if found.skipped is not None:
            raise BenchmarkSkipped(shortened(found.skipped) or "it is skipped")
        if found.error:
            failed = BenchmarkFailed(shortened(found.error))
            failed.printed = self._last_printed()
            raise failed
        return found

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self) -> None:
        """Ask for a sample."""
        try:
            os.write(self._requests, b"s")
        except OSError:
            raise self._died() from None

    def end(self) -> None:
        for name in ("_replies", "_requests"):
            if (fd := getattr(self, name)) >= 0:
                os.close(fd)
                setattr(self, name, -1)
        if self._process.poll() is None:
            if self._within:
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> BenchmarkProcess:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()

    def _died(self) -> BenchmarkFailed:
        status = self._process.wait()
        printed = self._last_printed()
        last = next((line for line in reversed(printed.splitlines()) if line.strip()), "")
        how = f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        failed = BenchmarkFailed(f"its process {how}{f': {shortened(last)}' if last else ''}")
        failed.printed = printed
        return failed

    def _last_printed(self) -> str:
        size = os.fstat(self._printed.fileno()).st_size
        text = os.pread(self._printed.fileno(), _MOST_PRINTED, max(0, size - _MOST_PRINTED))
        return text.decode("utf-8", "replace")
