"""Containers that a worker starts through a client, such as docker: known by a label, and ended with the worker.

They are processes of a service and no children of the client, so they outlive it when it is killed. The label is the
worker's token. What must remove them gets the words of the client by a variable.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlap.machine.programs.guardian import CLIENT

LABEL = "fairlap.worker"
_CLIENTS = frozenset({"docker", "podman", "nerdctl"})
_STARTS = frozenset({"run", "create"})
_WITH_VALUE = frozenset([
    "-H", "--host", "-c", "--context", "-l", "--log-level", "--config", "--tlscacert", "--tlscert", "--tlskey",
    "-n", "--namespace", "-a", "--address", "--url", "--connection", "--identity", "--root", "--runroot", "--runtime",
    "--storage-driver", "--storage-opt", "--cgroup-manager",
])  # fmt: skip
"""Options of the clients themselves that are followed by a value."""

_LISTED_WITHIN_S = 20.0


def runs_in_container(words: Sequence[str]) -> bool:
    """Whether the command, or the one that sudo runs, is a client of a service of containers."""
    names = [Path(word).name for word in words if Path(word).name != "sudo"]
    return bool(names) and names[0] in _CLIENTS


def client_in(words: Sequence[str]) -> tuple[str, ...]:
    """Find the client with its own options, by which the containers that the command starts can be found again.

    It is empty for a command that starts none.
    """
    named = words[: _place_of_start(words)]
    return tuple(named[:-1] if named[-1:] == ["container"] else named)


def labelled(words: Sequence[str], token: str) -> list[str]:
    """Give the container that the command starts a label."""
    place = _place_of_start(words)
    return [*words[: place + 1], f"--label={LABEL}={token}", *words[place + 1 :]] if place else list(words)


def _place_of_start(words: Sequence[str]) -> int:
    """Find the client's command among its words, if that is one that starts a container; 0 for any other."""
    if not runs_in_container(words):
        return 0
    place = 1 + next(place for place, word in enumerate(words) if Path(word).name in _CLIENTS)
    while place < len(words) and (words[place].startswith("-") or words[place] == "container"):
        place += 2 if words[place] in _WITH_VALUE else 1
    return place if place < len(words) and words[place] in _STARTS else 0


def remove_containers(client: Sequence[str], token: str) -> None:
    """End and remove what has the label, as far as the service answers."""
    if not client:
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        found = _answer(client, "ps", "--all", "--quiet", "--filter", f"label={LABEL}={token}").split()
        if found:
            _answer(client, "rm", "--force", "--volumes", *found)


def remove_containers_of(environment: Mapping[str, str], token: str) -> None:
    """Remove those of a worker that has this environment."""
    remove_containers(shlex.split(environment.get(CLIENT, "")), token)


def _answer(client: Sequence[str], *words: str) -> str:
    done = subprocess.run(
        [*client, *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        timeout=_LISTED_WITHIN_S, check=False, start_new_session=True, env=os.environ,
    )  # fmt: skip
    return done.stdout
