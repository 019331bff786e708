"""``fairlap serve`` as a process: the port, the token, many reports at once, and the end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from command_line import refusal
from fairlap.store.store import open_store
from machine_marks import needs
from runs_for_rows import a_run
from runs_in_store import keep_whole
from serving import serving

needs("uvicorn", reason="needs the extra serve; `make test` installs it and runs this")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with open_store(tmp_path / "runs.sqlite") as store:
        keep_whole(store, a_run())
    return tmp_path / "runs.sqlite"


def port_of(address: str) -> int:
    return int(re.findall(r":(\d+)/", address)[0])


def test_this_machine_is_served_without_a_token_and_ctrl_c_ends_it_at_once(store: Path) -> None:
    with serving(store) as (process, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
        with urllib.request.urlopen(f"{address}api/runs") as answer:
            assert "server" not in answer.headers
            assert len(json.load(answer)["runs"]) == 1
        # A connection that stays open and a request that was begun keep nothing waiting.
        with socket.create_connection(("127.0.0.1", port_of(address))) as half:
            half.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_of_the_machine_gets_nothing_without_a_token(store: Path) -> None:
    program = (
        "import encodings.idna, os, sys, urllib.request; os.setgroups([]); os.setgid(65534); os.setuid(65534); "
        + ("print(urllib.request.urlopen(sys.argv[1]).read())")
    )
    with serving(store) as (_, address):
        asked = [sys.executable, "-c", program, f"{address}api/runs"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == ""
        assert "403" in done.stderr
        with urllib.request.urlopen(f"{address}api/runs") as answer:
            assert answer.status == 200


@pytest.mark.slow
def test_a_page_that_is_still_being_made_keeps_the_end_waiting_no_longer(store: Path) -> None:
    with serving(store) as (process, address), closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")  # a page waits for the store
        with socket.create_connection(("127.0.0.1", port_of(address))) as waiting:
            waiting.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130


def test_other_machines_need_the_token_that_is_printed_once(store: Path) -> None:
    with serving(store, "--host", "0.0.0.0") as (process, address):
        token = address.partition("?token=")[2]
        assert len(token) >= 32
        local = f"http://127.0.0.1:{port_of(address)}/"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(local)
        assert refused.value.code == 401
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(f"{local}?token={token}") as answer:
            assert (answer.status, answer.url) == (200, local)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert token not in process.stderr.read()


def test_a_token_of_the_environment_is_needed_here_too_and_is_never_printed(store: Path) -> None:
    token = "only-of-this-test"
    with serving(store, FAIRLAP_SERVE_TOKEN=token) as (process, address):
        assert "token" not in address
        asked = urllib.request.Request(f"{address}api/runs", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
        assert process.stderr is not None
        assert token not in process.stderr.read()


def test_a_port_that_is_taken_is_one_line(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(store))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert refusal("serve", "--port", taken.getsockname()[1]).code == "E_NOT_AVAILABLE"


@pytest.mark.parametrize("host", ["203.0.113.7", "a" * 300, "\udcff"])
def test_a_host_that_is_not_of_this_machine_is_one_line(
    store: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(store))
    assert refusal("serve", "--host", host, "--port", "0").code == "E_NOT_AVAILABLE"


@pytest.mark.parametrize("token", ["short", "with a space in the middle", "ümlaut-of-some-length", "x" * 257])
def test_a_token_that_cannot_be_used_is_refused_and_not_shown(
    store: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(store))
    monkeypatch.setenv("FAIRLAP_SERVE_TOKEN", token)
    error = refusal("serve", "--port", "0")
    assert error.code == "E_SERVE_TOKEN"
    assert token not in str(error)


def test_a_damaged_store_is_refused_before_anything_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    assert refusal("serve", "--port", "0").code == "E_STORE_DAMAGED"


@pytest.mark.parametrize("package", ["fastapi", "uvicorn"])
def test_a_package_that_is_missing_is_one_line(store: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(store))
    for name in [name for name in sys.modules if name.startswith("fairlap.browse")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    error = refusal("serve")
    assert error.code == "E_NOT_AVAILABLE"
    assert package in str(error)


REPORTS = 40
LONGEST_S, MOST_GROWTH_BYTES = 60, 2**30


def _got(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=LONGEST_S) as answer:
        return answer.status, answer.read()


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
def test_forty_reports_at_once_are_made_and_others_are_answered(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="needs the extra report; `make test` installs it and runs this")
    with open_store(tmp_path / "runs.sqlite") as store:
        run = keep_whole(store, a_run())
    with serving(tmp_path / "runs.sqlite") as (process, address), ThreadPoolExecutor(REPORTS) as clients:
        _, page = _got(f"{address}runs/{run}")
        before_bytes = _resident_bytes(process.pid)
        began_s = time.monotonic()
        asked = [clients.submit(_got, f"{address}runs/{run}") for _ in range(REPORTS)]
        status, listed = _got(f"{address}api/runs")
        assert status == 200
        assert len(json.loads(listed)["runs"]) == 1
        assert [each.result() for each in asked] == [(200, page)] * REPORTS
        assert time.monotonic() - began_s < LONGEST_S
        assert _resident_bytes(process.pid) - before_bytes < MOST_GROWTH_BYTES
        assert process.poll() is None
        assert _got(f"{address}api/runs")[0] == 200
