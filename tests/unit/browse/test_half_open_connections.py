"""Both servers: clients that send half a request keep no other client out, and fill no log."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fairlap.machine.serving.connections import Connections, most_connections
from machine_marks import needs
from processes_seen import wait_until

needs("uvicorn", reason="needs the extra serve; `make test` installs it and runs this")
needs("prometheus_client", reason="needs the extra watch; `make test` installs it and runs this")

SERVERS = {"serve": ("serve", "--port", "0"), "watch": ("watch", "--serve", "0", "--interval", "0.5")}
DESCRIPTORS, ATTACKERS = 64, 80
HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Running:
    def __init__(self, process: subprocess.Popen[bytes], errors: Path) -> None:
        self.process, self.errors = process, errors
        found = wait_until(lambda: re.search(r"http://[\w.]+:(\d+)/\S*(?=;)", errors.read_text()), running=process)
        assert found is not None
        self.port, self.url = int(found[1]), found[0]

    def get(self, host: str = "127.0.0.1", timeout_s: float = 2, path: str = "", **headers: str) -> int:
        url = path or self.url
        request = urllib.request.Request(url, headers={"Host": f"{host}:{self.port}", **headers})
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


@contextmanager
def running(server: str, folder: Path, *further: str, descriptors: int = 1024) -> Iterator[Running]:
    words = [sys.executable, "-m", "fairlap", *SERVERS[server], *further]
    errors = folder / "errors"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    environment = {**os.environ, "FAIRLAP_STORE": str(folder / "none.sqlite")}
    with errors.open("wb") as file:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file, env=environment, preexec_fn=limited)
    try:
        yield Running(process, errors)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _attack(port: int, sent: bytes, count: int = ATTACKERS) -> list[socket.socket]:
    opened = []
    for _ in range(count):
        each = socket.create_connection(("127.0.0.1", port), timeout=10)
        each.sendall(sent)
        opened.append(each)
    return opened


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("sent", [HALF, b""])
def test_half_open_connections_keep_no_good_request_out(server: str, sent: bytes, tmp_path: Path) -> None:
    with running(server, tmp_path, descriptors=DESCRIPTORS) as found:
        attackers = _attack(found.port, sent)
        began_s = time.monotonic()
        while True:
            try:
                assert found.get() == 200
                break
            except OSError:
                assert time.monotonic() - began_s < 2
        assert time.monotonic() - began_s < 2
        used_s = _processor_time_s(found.process.pid)
        time.sleep(1)
        assert _processor_time_s(found.process.pid) - used_s < 0.5  # it does not spin
        time.sleep(5)
        assert found.get() == 200
        for each in attackers:  # all were given up
            each.settimeout(5)
            assert _is_closed(each)
            each.close()
        assert found.get() == 200
    assert found.errors.stat().st_size < 10_000
    assert "Traceback" not in found.errors.read_text()


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(65536) == b""
    except ConnectionError:
        return True


def _processor_time_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _send_slowly(connection: socket.socket, content: bytes) -> None:
    for letter in content:
        connection.sendall(bytes([letter]))
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
def test_a_byte_now_and_then_does_not_hold_a_connection(server: str, tmp_path: Path) -> None:
    with running(server, tmp_path) as found, socket.create_connection(("127.0.0.1", found.port)) as slow:
        began_s = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT011  (which one depends on the moment)
            _send_slowly(slow, HALF * 20)
        assert time.monotonic() - began_s < 9


@pytest.mark.slow_but("watch")
@pytest.mark.parametrize("server", SERVERS)
def test_another_name_is_refused_and_only_get_and_head_are_served(server: str, tmp_path: Path) -> None:
    with running(server, tmp_path) as found:
        assert found.get("evil.example") == 421
        assert found.get("localhost") == 200
        for sent in (
            b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"rubbish\r\n\r\n",
            b"GET http://x/ HTTP/1.1\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", found.port), timeout=10) as each:
                each.sendall(sent)
                assert re.match(rb"HTTP/1\.1 4(00|05|21) ", each.recv(65536))
        assert found.get() == 200
    assert found.errors.stat().st_size < 2_000


def test_metrics_for_other_machines_need_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_SERVE_TOKEN", "a-token-of-a-test-1")
    with running("watch", tmp_path) as found:
        local = f"http://127.0.0.1:{found.port}/metrics"
        assert found.get(path=local) == 401
        assert found.get(path=local, Authorization="Bearer wrong") == 401
        assert found.get(path=local, Authorization="Bearer a-token-of-a-test-1") == 200


def test_a_token_is_drawn_where_other_machines_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERVERS, "watch", ("watch", "--serve", "0.0.0.0:0", "--interval", "0.5"))
    with running("watch", tmp_path) as found:
        local = f"http://127.0.0.1:{found.port}/metrics"
        assert found.get(path=local) == 401
        token = re.findall(r"bearer token (\S{32,});", found.errors.read_text())[0]
        assert found.get(path=local, Authorization=f"Bearer {token}") == 200


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.aborted, self.unsent = False, 0

    def abort(self) -> None:
        self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unsent


def test_the_longest_waiting_connection_makes_room_and_an_asking_one_never() -> None:
    async def opened() -> None:
        connections = Connections(most=3)
        transports = [_Transport() for _ in range(6)]

        def aborted() -> list[int]:
            return [key for key, transport in enumerate(transports) if transport.aborted]

        for key in range(3):
            connections.opened(key, transports[key])
        connections.asked(0)
        connections.opened(3, transports[3])
        assert aborted() == [1]
        connections.asked(2)
        connections.asked(3)
        connections.opened(4, transports[4])
        assert aborted() == [1, 4]  # all others are being answered
        transports[2].unsent = 1000
        connections.waits(2)  # its client still reads
        connections.opened(5, transports[5])
        assert aborted() == [1, 4, 5]
        connections.close_all()
        assert len(connections) == 0

    asyncio.run(opened())


def test_connections_are_a_part_of_the_descriptors() -> None:
    assert 2 <= most_connections() <= 256


@pytest.mark.slow_but("watch")
@pytest.mark.parametrize("server", SERVERS)
def test_an_address_of_seventy_thousand_letters_is_refused_and_the_next_one_answered(
    server: str, tmp_path: Path
) -> None:
    with running(server, tmp_path) as run:
        with socket.create_connection(("127.0.0.1", run.port), timeout=10) as client:
            client.sendall(b"GET /" + 70_000 * b"a" + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = client.recv(64)
        assert answer[9:12] in (b"400", b"404", b"414", b"431"), answer
        assert run.get() == 200
        assert "Traceback" not in run.errors.read_text()
