"""One test, run again in fresh processes, each of which reports the medians of the callables that it measures.

A process measures what differs between processes too: where memory lies, what the hash seed orders. One process alone
cannot, however long it measures.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError, shortened
from fairlap.machine.files.scratch_folder import ScratchFolder

REPORT = "FAIRLAP_SPEED_REPORT"
"""The variable that names the file into which a fresh process reports."""


class TestFailed(FairlapError):
    """The test failed in a fresh process, or measured something else there than before."""

    __test__ = False  # not a class of tests, whatever its name
    code = "E_SPEED_TEST"


class Measured(msgspec.Struct, frozen=True):
    """One line of a report."""

    key: str
    median_ns: float


@dataclass(frozen=True)
class FreshProcesses:
    """How this session's tests are run again."""

    command: tuple[str, ...]  # without the test's node id
    root: Path  # to which node ids are relative
    folder: Path  # in which the session was started
    count: int
    limit_s: float

    def medians_ns(self, node_id: str) -> dict[str, tuple[float, ...]]:
        """Of each callable that the test measures, in the order of the processes."""
        found: dict[str, list[float]] = {}
        with ScratchFolder() as scratch:
            for number in range(self.count):
                for each in self._reported(node_id, scratch / f"{number}.jsonl"):
                    found.setdefault(each.key, []).append(each.median_ns)
        uneven = [key for key, medians in found.items() if len(medians) != self.count]
        if uneven:
            raise TestFailed(f"{uneven[0]} was measured in {len(found[uneven[0]])} of {self.count} fresh processes")
        return {key: tuple(medians) for key, medians in found.items()}

    def _reported(self, node_id: str, report: Path) -> Sequence[Measured]:
        process = subprocess.Popen(
            [*self.command, f"{self.root}/{node_id}"],
            cwd=self.folder,
            env={**os.environ, REPORT: str(report)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            raise TestFailed(f"the test did not end within {self.limit_s:g} s in a fresh process") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode:
            raise TestFailed(f"the test failed in a fresh process: {_reason(printed)}")
        try:
            return msgspec.json.Decoder(Measured).decode_lines(report.read_bytes()) if report.exists() else []
        except msgspec.MsgspecError as error:
            raise TestFailed(f"the report of a fresh process cannot be read: {error}") from None


def report(measured: Measured, file: Path) -> None:
    with file.open("ab") as lines:
        lines.write(msgspec.json.encode(measured) + b"\n")


def _reason(printed: bytes) -> str:
    """pytest begins the lines that explain a failure with E."""
    lines = [line for line in printed.decode("utf-8", "replace").splitlines() if line.strip()]
    explained = [line[1:].strip() for line in lines if line.startswith("E ")]
    return shortened((explained or lines[-1:] or ["no output"])[0])
