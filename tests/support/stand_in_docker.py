"""A program of docker's name, as far as fairlap speaks with it: a container is a process in a namespace of processes.

It has no files of its own: it sees this machine's, and runs this Python. What it was asked is kept line by line.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

IMAGE_ID = "5" * 64
_NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "setsid")
_SEARCHED = "/fairlap-worker/"


def _makes_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(not _makes_namespaces(), reason="this user may not make namespaces of processes")


def write_docker(folder: Path, images: dict[str, dict[str, str]] | None = None) -> Path:
    """Write the program, which has these images, each with its variables."""
    folder.mkdir(exist_ok=True)
    (folder / "images.json").write_text(json.dumps({"image:1": {}} if images is None else images))
    program = folder / "docker"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, __file__, str(folder)])} "$@"\n')
    program.chmod(0o755)
    return program


def asked_of(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "asked").read_text().splitlines()]


def containers_in(folder: Path) -> list[str]:
    return [each.name for each in folder.glob("fairlap-*")]


def _main(folder: Path, words: list[str]) -> int:
    with (folder / "asked").open("a") as file:
        file.write(json.dumps(words) + "\n")
    match words:
        case ["image", "inspect", name]:
            return _inspected_image(folder, name)
        case ["run", *rest]:
            return _run(folder, rest)
        case ["inspect", *_, name]:
            return _inspected(folder, name)
        case ["rm", *_, name]:
            return _removed(folder, name)
        case ["ps", *_]:
            return 0
    return 1


def _inspected_image(folder: Path, name: str) -> int:
    images = json.loads((folder / "images.json").read_text())
    if name not in images and (not images or name != f"sha256:{IMAGE_ID}"):
        print(f"Error: No such image: {name}", file=sys.stderr)
        return 1
    variables = images.get(name, next(iter(images.values())))
    print(json.dumps([{"Id": f"sha256:{IMAGE_ID}", "Config": {"Env": [f"{a}={b}" for a, b in variables.items()]}}]))
    return 0


def _run(folder: Path, words: list[str]) -> int:
    place = next(place for place, word in enumerate(words) if not word.startswith("-"))
    options, inside = words[:place], words[place + 1 :]
    name = next((word.partition("=")[2] for word in options if word.startswith("--name=")), "")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    for variable, _, value in (word[len("--env=") :].partition("=") for word in options if word.startswith("--env=")):
        environment[variable] = value or os.environ.get(variable, "")
    places = environment["PYTHONPATH"].split(os.pathsep)
    if places[0].startswith(_SEARCHED):
        places[:1] = [os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(places)
    started = subprocess.Popen([*_NAMESPACE, sys.executable, *inside], env=environment, start_new_session=True)
    if name:
        (folder / name).write_text(str(started.pid))
    status = started.wait()
    if name:
        (folder / name).unlink(missing_ok=True)
    return status if status >= 0 else 128 - status


def _children(folder: Path, name: str) -> list[int]:
    try:
        pid = int((folder / name).read_text())
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _inspected(folder: Path, name: str) -> int:
    found = _children(folder, name)
    print(*found)
    return 0 if found else 1


def _removed(folder: Path, name: str) -> int:
    for pid in _children(folder, name):
        os.kill(pid, signal.SIGKILL)
    (folder / name).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), sys.argv[2:]))
