"""One part in a process of its own: it may crash, hang or break the device, and the others still run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from .parts import Part
from .places import ROOT
from .record import FAILED, OVERRAN, RUNNING, Json, end_badly, read

GRACE_S = 20.0  # for what a part does after its last step, and for a step that is a little late


def run_part(part: Part, folder: Path, *, seconds: float, resume: bool, grace_s: float = GRACE_S) -> Json:
    """Its record, whatever became of it."""
    path = record_file(folder, part.number)
    log = folder / f"part-{part.number}.log"
    folder.mkdir(parents=True, exist_ok=True)
    if not resume:
        path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.gpu.proof.one_part", "--module", part.module, "--record", str(path)]
    command += ["--number", str(part.number), "--title", part.title, "--seconds", str(seconds)]
    command += ["--resume"] if resume else []
    with log.open("ab" if resume else "wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            status = process.wait(seconds + grace_s)
        except subprocess.TimeoutExpired:
            _end(process)
            end_badly(path, part.number, part.title, OVERRAN, f"it was ended after {seconds + grace_s:.0f} s")
            status = 0
        except BaseException:
            _end(process)
            raise
    told = read(path)
    if status != 0 or told is None or told["status"] == RUNNING:
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        end_badly(path, part.number, part.title, FAILED, f"{how}: {_last_line(log)}")
    return read(path) or {}


def record_file(folder: Path, number: int) -> Path:
    return folder / f"part-{number}.json"


def _end(process: subprocess.Popen[bytes]) -> None:
    """It, and all that it started in its session."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    process.wait()


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "it said nothing"
