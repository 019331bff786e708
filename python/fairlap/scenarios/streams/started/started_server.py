"""A server's process: started, ready within a limit, stopped while others have their turn, and ended for sure.

What it prints is kept in a log, which its errors name. It runs beneath a guardian, so that nothing of it outlives
fairlap, and all that it started is stopped, counted and ended with it.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError
from fairlap.machine.files.private_files import private_opener
from fairlap.machine.programs.guarded_command import GuardedCommand
from fairlap.machine.programs.process_tree import ProcessTree, descendants
from fairlap.meters.memory import memory_of, reset_peak
from fairlap.printable import one_line
from fairlap.scenarios.streams.protocols.contract import HttpProtocol
from fairlap.scenarios.streams.servers import StreamServer
from fairlap.secrets import without_secrets

E_SERVER_START = "E_SERVER_START"
E_SERVER_ENDED = "E_SERVER_ENDED"
E_LEFT_RUNNING = "E_LEFT_RUNNING"

_LOOK_EVERY_S, _LONGEST_LOOK_S = 0.05, 5.0
_STOPPED_WITHIN_S = 5.0
_LEAST_SEEN_S = 0.01  # of CPU time, a tick of the kernel
_END_OF_LOG = 4096  # bytes, of which the last line is shown
_LARGEST_LOG_BYTES = 100 << 20
_OK = 200


class ServerNotReady(FairlapError):
    """It cannot be started, ended, or did not answer in time."""

    code = E_SERVER_START


class StartedServer:
    """Use ``server``, whose address is where it listens, once it is ready."""

    def __init__(self, server: StreamServer, variables: Mapping[str, str], log: Path) -> None:
        """Start it. ``variables`` is its whole environment, but for those that its start sets."""
        assert server.start is not None
        self._start, self._log = server.start, log
        port = _free_port() if self._start.draws_port else self._start.address().port
        self.server = server.listening_on(port)
        words, variables = self._start.command(port), {**variables, **self._start.own_variables(port)}
        program = shutil.which(words[0], path=variables.get("PATH", os.defpath))
        if program is None:
            raise ServerNotReady(f"{words[0]} is not an executable program", code="E_NOT_INSTALLED")
        self._require_own_address()
        self._began_s, self.ready_s, self.is_over = time.monotonic(), 0.0, False
        with open(log, "ab", buffering=0, opener=private_opener) as output:
            self._command = GuardedCommand(
                (program, *words[1:]), Path.cwd(), variables, output.fileno(), output.fileno()
            )
        self._tree: ProcessTree | None = None

    def wait_until_ready(self) -> None:
        """Ask its health until it is good; ``ready_s`` is then how long that took from its start."""
        self._tree = self._command.tree()
        within_s, path = self._start.ready_within_s, self._health
        answer = "no answer"
        while (left_s := self._began_s + within_s - time.monotonic()) > 0:
            if why := self.why_ended():
                raise ServerNotReady(f"{why.text} before it was ready", code=E_SERVER_START)
            status = self._asked(path, min(left_s, _LONGEST_LOOK_S))
            if status == _OK:
                self.ready_s = time.monotonic() - self._began_s
                return
            answer = f"status {status}" if status else "no answer"
            time.sleep(_LOOK_EVERY_S)
        raise ServerNotReady(f"it was not ready within {within_s:g} s: {answer} to GET {path}{self._of_log()}")

    def why_ended(self, within_s: float = 0.0) -> Notice | None:
        """None while it runs, and where it has not ended ``within_s``."""
        until_s = time.monotonic() + within_s
        while (status := self._command.status()) is None and time.monotonic() < until_s:
            time.sleep(_LOOK_EVERY_S)
        if status is None:
            return self._why_too_much()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return Notice(E_SERVER_ENDED, f"its process ended with {how}{self._of_log()}")

    def _why_too_much(self) -> Notice | None:
        """End a server that would fill the disk."""
        if not self._log.exists() or self._log.stat().st_size <= _LARGEST_LOG_BYTES:
            return None
        self._command.end()
        self._log.write_bytes(b"")
        return Notice(
            E_SERVER_ENDED, f"it was ended: it had printed more than {quantity_text.size(_LARGEST_LOG_BYTES)}"
        )

    def freeze(self) -> str:
        """Stop all of its processes. Return why one continues to run; empty where none does."""
        if self._tree is None or self.why_ended():
            return ""
        running = self._tree.freeze(_STOPPED_WITHIN_S)
        return f"{len(running)} of its processes did not stop for the turns of others" if running else ""

    def thaw(self) -> str:
        """Continue them. Return what they computed meanwhile; empty where they did not."""
        if self._tree is None or self.why_ended():
            return ""
        used_s = sum(each for each in self._tree.thaw().values() if each > _LEAST_SEEN_S)
        return f"it used {used_s:.2g} s of CPU time in the turns of others" if used_s else ""

    def forget_peaks(self) -> str:
        """Count the peak of memory from now on; return why that cannot be."""
        reasons = [why for pid in descendants(self._command.guardian) if (why := reset_peak(pid))]
        return reasons[0] if reasons else ""

    def peak_bytes(self) -> int:
        """Add up the peaks of its processes, which may have been at different times. 0 where they are not listed."""
        return sum(memory_of(pid).get("peak", 0) for pid in descendants(self._command.guardian))

    def end(self) -> None:
        self._command.end()
        self.is_over = True

    @property
    def _health(self) -> str:
        protocol, address = self.server.protocol, self.server.address
        assert isinstance(protocol, HttpProtocol)
        assert address is not None
        return self._start.health or protocol.probe(address.path.rstrip("/"), self.server.model)

    def _asked(self, path: str, within_s: float) -> int:
        """Return its status; 0 where there is no answer."""
        address = self.server.address
        assert address is not None
        connection = http.client.HTTPConnection(address.hosts[0], address.port, timeout=within_s)
        try:
            connection.request("GET", path, headers={"Host": address.text})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def _require_own_address(self) -> None:
        """Another server there would answer in its place."""
        address = self.server.address
        assert address is not None
        try:
            socket.create_connection((address.hosts[0], address.port), timeout=1.0).close()
        except OSError:
            return
        raise ServerNotReady(f"another program listens on {address.text} already; end it, or name another port")

    def _of_log(self) -> str:
        """Name it, with the last line that was printed."""
        last = ""
        try:
            with self._log.open("rb") as file:
                file.seek(max(self._log.stat().st_size - _END_OF_LOG, 0))
                lines = file.read().decode("utf-8", "replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        except OSError:
            pass
        ends = f", which ends with: {one_line(without_secrets(last))}" if last else ""
        return f" (log: {self._log}{ends})"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
