"""The URL of a shared store: what is wrong with it is one clear line, and its password is never printed."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke, refusal
from fairlap.errors import FairlapError
from fairlap.launch.runners import Runner
from fairlap.race.planning.plan import Block
from fairlap.race.processes.block_worker import environment_of
from fairlap.request.names import Contestants
from fairlap.store.opening import store_path
from runs_for_rows import a_run

pytest.importorskip("psycopg")
from fairlap.store.shared.address import address_of

SECRET = "gar%gle@7"


def test_a_file_is_no_url_and_a_url_leaves_the_file_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", "postgresql://somebody@somewhere/runs")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.delenv("FAIRLAP_LOCAL_STORE", raising=False)
    assert store_path() == Path("/data/fairlap/runs.sqlite")
    monkeypatch.setenv("FAIRLAP_LOCAL_STORE", "/mine.sqlite")
    assert store_path() == Path("/mine.sqlite")
    monkeypatch.setenv("FAIRLAP_STORE", "/other.sqlite")
    assert store_path() == Path("/other.sqlite")


@pytest.mark.parametrize(
    ("url", "shown", "target"),
    [
        ("postgresql://u:p%40ss@host:5433/runs", "postgresql://u@host:5433/runs", "host:5433/runs"),
        ("postgres://host:5432/runs?user=u&password=secret", "postgresql://u@host/runs", "host/runs"),
        ("postgresql://u@[::1]/runs?sslpassword=secret", "postgresql://u@::1/runs", "::1/runs"),
        ("postgresql://u:secret@a,b/runs?sslmode=require", "postgresql://u@a,b/runs", "a,b/runs"),
    ],
)
def test_what_is_shown_of_an_address_has_no_password(url: str, shown: str, target: str) -> None:
    address = address_of(url)
    assert (address.shown, address.target) == (shown, target)
    assert repr(address) == f"Address({shown})"


def test_parameters_of_the_url_reach_the_client_and_waiting_is_bounded_unless_they_say_otherwise() -> None:
    given = address_of("postgresql://u@h/d?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=3").parameters
    assert (given["sslmode"], given["sslrootcert"], given["connect_timeout"]) == ("verify-full", "/ca.pem", "3")
    assert address_of("postgresql://u@h/d").parameters["connect_timeout"] == 10


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://u:{SECRET}@host/runs",
        f"postgresql://u:{SECRET}@host/runs",  # %ga is no character
        f"postgresql://u@host/runs?password={SECRET}",
        f"postgresql://u@host/runs?pasword={SECRET}",
        f"postgresql://u:x{SECRET}y@[host/runs",
        "postgresql://u@host/runs?connect_timeout=0",
        "postgresql://u@host/runs?connect_timeout=soon",
    ],
)
@pytest.mark.parametrize("command", [("runs",), ("show", "last"), ("runs", "push"), ("runs", "pull")])
def test_a_url_that_is_none_is_refused_without_repeating_it(
    url: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", url)
    error = refusal(*command)
    assert error.code == "E_STORE_URL"
    assert "gle" not in str(error)


def test_a_race_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", "mysql://host/runs")
    assert refusal("compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid").code == "E_STORE_URL"


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "psycopg":
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setenv("FAIRLAP_STORE", "postgresql://u@host/runs")
    monkeypatch.setattr(builtins, "__import__", without)
    error = refusal("runs")
    assert error.code == "E_NOT_AVAILABLE"
    assert "fairlap[postgresql]" in str(error)


@pytest.mark.parametrize("command", [("runs", "push", "--all"), ("runs", "pull")])
def test_without_a_url_there_is_nothing_to_share_with(command: tuple[str, ...]) -> None:
    assert refusal(*command).code == "E_STORE_URL"


def test_a_server_that_refuses_is_given_up_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", "postgresql://u:verysecret@127.0.0.1:1/runs")
    monkeypatch.setattr("fairlap.store.shared.shared_store.PAUSES_S", (0.01, 0.01))
    result = invoke("runs")
    assert isinstance(result.exception, FairlapError)
    assert result.exception.code == "E_STORE_UNREACHABLE"
    assert "verysecret" not in str(result.exception)


def test_with_a_file_nothing_of_it_is_imported(tmp_path: Path) -> None:
    listing = (
        "import sys; from fairlap.cli import cli; cli(['runs'], standalone_mode=False);"
        "print([name for name in sys.modules if name.startswith(('psycopg', 'fairlap.store.shared'))])"
    )
    environment = {**os.environ, "FAIRLAP_STORE": str(tmp_path / "runs.sqlite")}
    done = subprocess.run([sys.executable, "-c", listing], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_contestant_does_not_see_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", "postgresql://u:verysecret@host/runs")
    block: Block = a_run().plan.blocks[0]
    runner = Runner(next(iter(Contestants("numpy"))))
    assert not any("verysecret" in value for value in environment_of(block, runner).values())
