"""The commands of a user that come before the race: a build in both folders, and tests in the change."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from fairlap.errors import last_line
from fairlap.judgement.judgement import Judgement, Reason, decided
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.machine.programs.guarded_command import run_guarded
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.pull_request.checkouts import NoBaseline

_MOST_LINES = 20
_MOST_BYTES = 4000


def why_not_built(base: Path, change: Path, command: str, passed: Collection[str]) -> Judgement | None:
    """Build both; None where both are. A base that cannot be built is an error."""
    status, printed = run_printing(command, base, passed)
    if status:
        last = last_line(printed)
        raise NoBaseline(f"{command!r} failed in the base with status {status}{f': {last}' if last else ''}")
    return _failure("build_failed", "E_PREPARE", command, change, passed)


def why_tests_failed(change: Path, command: str, passed: Collection[str]) -> Judgement | None:
    """Run the tests in the change; None where they pass."""
    return _failure("tests_failed", "E_TESTS", command, change, passed)


def _failure(reason: Reason, code: str, command: str, change: Path, passed: Collection[str]) -> Judgement | None:
    status, printed = run_printing(command, change, passed)
    if not status:
        return None
    return decided(
        "discard", reason, f"{command!r} failed in the change with status {status}", code=code, output=printed
    )


def run_printing(command: str, folder: Path, passed: Collection[str]) -> tuple[int, str]:
    """Return the status and the end of what was printed."""
    with ScratchFolder() as scratch:
        printed = scratch / "printed"
        words = ["sh", "-c", 'exec sh -c "$1" >"$2" 2>&1', "sh", command, str(printed)]
        status = run_guarded(words, folder, own_environment(passed))
        content = printed.read_bytes() if printed.exists() else b""
    lines = content[-_MOST_BYTES:].decode("utf-8", "replace").splitlines()
    return status, "\n".join(lines[-_MOST_LINES:])
