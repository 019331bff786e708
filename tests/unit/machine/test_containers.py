"""Containers that commands start: which client starts them, and that they are found by a label and removed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.programs.command import CommandLine
from fairlap.machine.programs.containers import (
    client_in,
    labelled,
    remove_containers,
    remove_containers_of,
    runs_in_container,
)
from fairlap.machine.programs.guardian import CLIENT
from machine_marks import needs_proc


@pytest.mark.parametrize(
    ("command", "client"),
    [
        ("docker run --rm image true", "docker"),
        ("sudo docker -H unix:///x.sock run image", "sudo docker -H unix:///x.sock"),
        ("/usr/bin/podman container run image", "/usr/bin/podman"),
        ("docker exec box true", ""),
        ("docker exec box run", ""),
        ("docker compose run box", ""),
        ("podman --runtime runc --log-level=error create image", "podman --runtime runc --log-level=error"),
        ("docker", ""),
        ("docker -H", ""),
        ("echo docker run image", ""),
        ("sudo", ""),
    ],
)
def test_the_client_of_a_container_is_found_with_its_own_options(command: str, client: str) -> None:
    assert client_in(command.split()) == tuple(client.split())
    found = labelled(command.split(), "token")
    assert [word for word in found if word not in command.split()] == ["--label=fairlap.worker=token"] * bool(client)
    assert runs_in_container(command.split()) == ("docker" in command.split()[0] or bool(client))


def test_the_label_comes_before_the_image(tmp_path: Path) -> None:
    assert labelled(["docker", "run", "image", "run"], "t") == [
        "docker",
        "run",
        "--label=fairlap.worker=t",
        "image",
        "run",
    ]


def test_the_variable_of_a_worker_names_the_client() -> None:
    found = CommandLine.environment_for(Settings(1, options={"run": "sudo docker run 'an image'"}))
    assert shlex.split(found[CLIENT]) == ["sudo", "docker"]
    assert CLIENT not in CommandLine.environment_for(Settings(1, options={"run": "true"}))


def stand_in(folder: Path, listed: str) -> Path:
    program = folder / "docker"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n[ $1 = ps ] && echo {listed}\n')
    program.chmod(0o755)
    return program


def test_what_has_the_label_is_removed(tmp_path: Path) -> None:
    remove_containers_of({CLIENT: str(stand_in(tmp_path, "one two"))}, "a-token")
    listed, removed = (tmp_path / "asked").read_text().splitlines()
    assert listed.endswith("label=fairlap.worker=a-token")
    assert removed == "rm --force --volumes one two"


@pytest.mark.slow_but("True")
@needs_proc
@pytest.mark.parametrize("killed", [False, True])
def test_they_are_removed_when_the_worker_ends_and_when_fairlap_is_killed(tmp_path: Path, killed: bool) -> None:
    docker = stand_in(tmp_path, "one")
    code = f"""
        import os, sys, time
        from fairlap.launch.started_worker import python_worker
        from fairlap.launch.worker_process import WorkerProcess
        worker = WorkerProcess(python_worker(), environment={{**os.environ, {CLIENT!r}: {str(docker)!r}}})
        print(worker.token, flush=True)
        if {killed}:
            time.sleep(60)
        worker.end()
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    token = parent.stdout.readline().strip()
    if killed:
        os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    asked = tmp_path / "asked"
    until_s = time.monotonic() + 60
    while not (asked.exists() and "rm " in asked.read_text()) and time.monotonic() < until_s:
        time.sleep(0.02)
    listed, removed, *_ = asked.read_text().splitlines()
    assert listed.endswith(f"label=fairlap.worker={token}")
    assert removed == "rm --force --volumes one"


def test_nothing_is_removed_where_nothing_has_the_label_or_no_client_is_named(tmp_path: Path) -> None:
    remove_containers([str(stand_in(tmp_path, ""))], "a-token")
    assert len((tmp_path / "asked").read_text().splitlines()) == 1
    remove_containers((), "a-token")
    remove_containers_of({}, "a-token")
    remove_containers([str(tmp_path / "none")], "a-token")  # the client is gone
