"""Start a process on another host: through ssh, or through the command in ``FAIRLAP_REMOTE_SHELL``.

What the process runs, and its environment with the token, go through standard input: no list of processes shows them,
and nothing has to be quoted for the shells on the way.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

SHELL = "FAIRLAP_REMOTE_SHELL"

NOT_SEEN = 90
"""The status with which the script ends where a file is not there. It prints which one."""

NOT_SEEN_LINE = "fairlap does not find "

_SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
_OF_THIS_HOST = (  # of which each host and each session has its own
    *("HOME", "HOSTNAME", "LOGNAME", "MAIL", "OLDPWD", "PWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "USER", "_"),
    *("DISPLAY", "DBUS_SESSION_BUS_ADDRESS"),
)
_OF_SESSIONS = ("SSH_", "XDG_")


def remote_shell() -> list[str]:
    return shlex.split(os.environ.get(SHELL, "")) or list(_SSH)


def command_on(host: str) -> list[str]:
    """Build the command, which reads the script from its standard input."""
    return [*remote_shell(), host, "/bin/sh", "-s"]


def script(command: Sequence[str], environment: Mapping[str, str], files: Sequence[str]) -> bytes:
    """``files`` are those that the process reads: hosts have to see the same ones."""
    lines = [
        f"[ -r {shlex.quote(file)} ] || {{ echo {shlex.quote(NOT_SEEN_LINE + file)} >&2; exit {NOT_SEEN}; }}"
        for file in files
    ]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in carried(environment).items()]
    lines.append(f"exec {shlex.join(command)} < /dev/null")
    return "\n".join((*lines, "")).encode()


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """Select the variables that ranks on other hosts get too."""
    return {
        name: value
        for name, value in environment.items()
        if name.isidentifier() and name not in _OF_THIS_HOST and not name.startswith(_OF_SESSIONS)
    }
