"""A loop by hand in a fresh process, which is stopped with all that it started while it is not its turn."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Timer
from types import TracebackType

from fairlap.machine.programs.guardian import end_with_parent
from fairlap.race.processes.block_worker import CONTROLLED_MEMORY, OFFLINE

LIMIT_S = 600
DEVICE = "AGREEMENT_DEVICE"
PORTS = ("AGREEMENT_PORT", "AGREEMENT_SECOND_PORT")  # at which ranks meet


@dataclass(frozen=True)
class LoopTurn:
    given: Sequence[float]
    taken: Sequence[float]


class Loop:
    """``turns`` are those that it took, in order."""

    def __init__(
        self,
        command: Sequence[str],
        cores: Sequence[int],
        device: str = "cpu",
        *,
        is_stopped: bool = True,
        memory_is_controlled: bool = True,
    ) -> None:
        """``is_stopped`` between its turns. Ranks only wait: TensorFlow's give up a rank that is still for 10 s."""
        self.turns: list[LoopTurn] = []
        self._is_stopped = is_stopped
        self._command = command
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed at the end)
        memory = CONTROLLED_MEMORY if memory_is_controlled else {}
        ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **OFFLINE, **memory, **ports, DEVICE: device},
            start_new_session=True,
            preexec_fn=lambda: bind(cores),
        )
        self._answer()  # that it is warm
        self._stop()

    def take_turn(self, given: Sequence[float] = ()) -> Sequence[float]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([*given]) + "\n")
        self._process.stdin.flush()
        self._signal(signal.SIGCONT)
        taken = self._answer()
        self._stop()
        self.turns.append(LoopTurn(given, taken))
        return taken

    def _stop(self) -> None:
        if self._is_stopped:
            self._signal(signal.SIGSTOP)

    def _answer(self) -> Sequence[float]:
        assert self._process.stdout is not None
        limit = Timer(LIMIT_S, self._signal, [signal.SIGKILL])
        limit.start()
        try:
            line = self._process.stdout.readline()
        finally:
            limit.cancel()
        if not line:
            self._errors.seek(0)
            raise RuntimeError(f"{' '.join(self._command)}: {self._errors.read().decode(errors='replace').strip()}")
        found: Sequence[float] = json.loads(line)
        return found

    def _signal(self, which: signal.Signals) -> None:
        os.killpg(self._process.pid, which)

    def __enter__(self) -> Loop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signal(signal.SIGKILL)
        self._process.communicate()
        self._errors.close()


def bind(cores: Sequence[int]) -> None:
    """Bind this process to the cores and to the life of its parent: a stopped one would outlive it."""
    os.sched_setaffinity(0, cores)
    end_with_parent(signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in held]
