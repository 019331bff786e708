"""Images that contestants run in: found by name, pinned by id, and asked what their Python has.

Nothing is pulled: an image that is not here is an error, which names the command that brings it.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fairlap.errors import FairlapError, shortened
from fairlap.launch.packages.interpreters import own_interpreter
from fairlap.request.fields.package_origin import image_in, pinned_image

CHOSEN = "FAIRLAP_DOCKER"
PYTHON = "python3"  # of the image's PATH
_ANSWERS_WITHIN_S = 120.0  # on a busy machine, with an image that was never run before
_REMOVED_WITHIN_S = 20.0
_QUESTIONS = """\
import json, sys, sysconfig
from importlib.util import find_spec
def lacks(name):
    try:
        return find_spec(name) is None
    except Exception:
        return True
print(json.dumps({
    "version": list(sys.version_info[:3]),
    "implementation": sys.implementation.name,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "missing": [each for each in sys.argv[1:] if lacks(each)],
}))
"""


class NoImage(FairlapError):
    """The image of a contestant is not here, or no container of it can run a worker."""

    code = "E_IMAGE"


@dataclass(frozen=True)
class Image:
    name: str
    id: str  # "sha256:" and 64 digits
    variables: tuple[tuple[str, str], ...] = ()  # that it sets

    @property
    def pinned(self) -> str:
        return pinned_image(self.name, self.id.removeprefix("sha256:"))


def client() -> str:
    """Find the program that runs containers: docker, or what ``FAIRLAP_DOCKER`` names."""
    named = os.environ.get(CHOSEN) or "docker"
    found = shutil.which(named)
    if found is None:
        raise NoImage(f"{named} is not an executable program here; containers need a client of Docker, or of podman")
    return found


def _client_name() -> str:
    return Path(client()).name


def image_named(text: str) -> Image:
    """Find an image by its name, or by its id where it is pinned. Raise NoImage where it is not here."""
    name, id_ = image_in(text)
    done = _run("image", "inspect", f"sha256:{id_}" if id_ else name)
    if done.returncode:
        why = done.stderr.strip().splitlines()
        if not why or "no such image" in done.stderr.lower() or "image not known" in done.stderr.lower():
            pinned = f" with the id sha256:{id_[:12]}, which the race was planned with" if id_ else ""
            raise NoImage(f"no image {name}{pinned} is here; get it with `{_client_name()} pull {name}`, or build it")
        raise NoImage(f"{_client_name()} cannot look for the image {name}: {shortened(why[-1])}")
    found = json.loads(done.stdout)[0]
    whole_id = found["Id"] if found["Id"].startswith("sha256:") else f"sha256:{found['Id']}"
    set_there = (each.partition("=") for each in found.get("Config", {}).get("Env") or ())
    return Image(name, whole_id, tuple((name, value) for name, _, value in set_there))


@lru_cache(maxsize=64)
def missing_in(image: Image, modules: tuple[str, ...]) -> tuple[str, ...]:
    """Ask the image's Python which modules it lacks. Raise NoImage for a Python that this fairlap does not run in."""
    inside = ("-B", "-c", _QUESTIONS, *modules)
    done = _run("run", "--rm", *ISOLATED, open_files(), "--workdir=/", f"--entrypoint={PYTHON}", image.id, *inside)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if done.returncode or not isinstance(answer, dict):
        printed = [line for line in done.stderr.splitlines() if line.strip() and "--help" not in line]
        why = f": {shortened(printed[-1])}" if printed else ""
        raise NoImage(f"no {PYTHON} that answers runs in a container of {image.name}{why}")
    own = own_interpreter()
    free_threaded = bool(answer["free_threaded"])
    if answer["implementation"] != "cpython" or (tuple(answer["version"][:2]), free_threaded) != (
        own.version[:2],
        own.free_threaded,
    ):
        there = f"{answer['implementation']} {'.'.join(map(str, answer['version']))}{'t' if free_threaded else ''}"
        raise NoImage(
            f"{image.name} has {there}, and fairlap's native module here is for CPython {own.name}; "
            "run fairlap in the image's version of Python, or use an image with this one"
        )
    return tuple(answer["missing"])


ISOLATED = ("--pull=never", "--network=none", "--log-driver=none")
"""Nothing is fetched or sent, and what a worker prints is kept by fairlap alone."""


def open_files() -> str:
    """Let a container open as many files as this process.

    Services may allow a billion, which what closes all of them takes long over. podman takes the limits of this process
    as they are, and may not be allowed to set its own.
    """
    if Path(client()).name == "podman":
        return "--ulimit=host"
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    return "--ulimit=nofile=" + ":".join("-1" if each == resource.RLIM_INFINITY else str(each) for each in limits)


def remove(name: str) -> None:
    """End and remove a container, if there is one of this name."""
    _run("rm", "--force", "--volumes", name, within_s=_REMOVED_WITHIN_S)


def host_pid_of(name: str) -> int:
    """Find the first process of a container by its id on the machine of the service; 0 for one that does not run."""
    done = _run("inspect", "--type=container", "--format={{.State.Pid}}", name)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip().isdecimal() else 0


def _run(*words: str, within_s: float = _ANSWERS_WITHIN_S) -> subprocess.CompletedProcess[str]:
    command: Sequence[str] = (client(), *words)
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=within_s, check=False, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NoImage(f"docker {words[0]} did not end within {within_s:g} s") from None
    except OSError as error:
        raise NoImage(f"{command[0]} cannot be started: {error.strerror}") from None
