"""Contestants and commands in containers of a real Docker service: they race, and none is left however fairlap ends."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import error_code, fairlap
from image_of_here import import_image, needs_docker, remove_image

pytestmark = [pytest.mark.sanitized, pytest.mark.thorough, needs_docker]


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    tag = f"fairlap-tests-{secrets.token_hex(4)}:1"
    import_image(tag)
    yield tag
    remove_image(tag)


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout.strip()


def containers_of(image: str) -> list[str]:
    return docker("ps", "--all", "--quiet", "--filter", f"ancestor={image}").split()


def rows_of(*arguments: object, cwd: Path | None = None, status: int = 0) -> dict[str, dict[str, Any]]:
    done = fairlap(*arguments, "--json", cwd=cwd, timeout_s=280)
    assert done.returncode == status, done.stderr
    return {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}


def until(condition: Any, within_s: float = 60.0) -> bool:
    end_s = time.monotonic() + within_s
    while not condition() and time.monotonic() < end_s:
        time.sleep(0.1)
    return bool(condition())


def test_a_framework_in_an_image_races_the_one_that_is_here(image: str) -> None:
    there = f"numpy@docker={image}"
    rows = rows_of(
        "compare", "pendulum", "--mode", "simulate", "--on", f"numpy,{there}", "--blocks", "1", "--seconds", "0.1"
    )
    assert [(row["outcome"], row["message"]) for row in rows.values()] == [("finished", "")] * 2
    assert rows[there]["version"] == rows["numpy"]["version"]
    assert rows[there]["origin"] == {
        "image": image,
        "image_id": docker("image", "inspect", "--format", "{{.Id}}", image),
    }
    assert rows["numpy"]["origin"] == {}
    assert all(row["peak_memory_bytes"]["value"] > 0 for row in rows.values())
    assert containers_of(image) == []


def test_a_callable_runs_there_and_its_crash_is_its_own(image: str, tmp_path: Path) -> None:
    (tmp_path / "hot.py").write_text(
        "import os\n"
        "def where():\n    assert os.path.exists('/.dockerenv')\n"
        "def crash():\n    os.kill(os.getpid(), 11)\n"
        "def network():\n    import socket; socket.create_connection(('192.0.2.1', 9), 1)\n"
    )
    names = {each: f"python:call=hot.{each}:docker={image}" for each in ("where", "crash", "network")}
    rows = rows_of(
        "compare", "callable", "--on", ",".join(names.values()), "--blocks", "1", "--seconds", "0.05", cwd=tmp_path
    )
    outcomes = {each: (rows[name]["outcome"], rows[name]["code"]) for each, name in names.items()}
    assert outcomes == {
        "where": ("finished", ""),
        "crash": ("crash", "E_CRASH"),
        "network": ("failed", "E_EXCEPTION"),
    }
    assert containers_of(image) == []


def test_an_image_without_the_framework_and_one_that_is_missing_are_one_line(image: str) -> None:
    rows = rows_of("compare", "mlp", "--on", f"jax@docker={image}", "--blocks", "1", status=1)
    assert [row["code"] for row in rows.values()] == ["E_NOT_INSTALLED"]
    assert error_code(fairlap("compare", "mlp", "--on", "numpy@docker=fairlap-no-image:1")) == "E_IMAGE"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("kind", ["callable", "command"])
def test_none_is_left_however_fairlap_ends(image: str, tmp_path: Path, how: signal.Signals, kind: str) -> None:
    (tmp_path / "hot.py").write_text("import time\ndef wait():\n    time.sleep(1000)\n")
    command = f"wait=docker run --rm --network none {image} python3 -c 'import time; time.sleep(1000)'"
    asked = {
        "callable": ("callable", "--on", f"python:call=hot.wait:docker={image}"),
        "command": ("--command", command),
    }[kind]
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlap", "compare", *asked, "--blocks", "1"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "FAIRLAP_LOCK": str(tmp_path / "lock")},
    )  # fmt: skip
    try:
        assert until(lambda: containers_of(image))
        process.send_signal(how)
        process.wait(60)
        assert until(lambda: not containers_of(image))
    finally:
        process.kill()
        process.wait()
