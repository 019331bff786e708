"""Hosts on this machine: network namespaces with addresses of their own, which see the same files.

A remote shell starts commands in them. On each, the name of the machine means the host's own address, as it does on
hosts that are set up well. Takes root and iproute2. A host may be at the end of a wire that delays what passes it, and
its clocks may be ahead of this machine's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import delaying_wire

_NETWORK = "10.213.77"
HERE = f"{_NETWORK}.1"
HOSTS = (f"{_NETWORK}.2", f"{_NETWORK}.3")
ANOTHER = f"{_NETWORK}.4"
_BRIDGE = "fairlap-br"
_OF_NAMESPACES = Path("/etc/netns")  # whose files take the place of those in /etc
_WIRE = Path(delaying_wire.__file__)

# Like ssh, it joins the words of the command and hands them to a shell on the host, which has its own name.
_SHELL = """#!/bin/sh
name=fairlap-${{1##*.}}
case $1 in
{clocks}
esac
shift
exec ip netns exec "$name" unshare --uts $clocks /bin/sh -c 'hostname "$0" && exec /bin/sh -c "$1"' "$name" "$*"
"""


@dataclass(frozen=True)
class Wire:
    """What is sent by the host, and to it, takes at least so long."""

    sent_late_s: float = 0.0
    received_late_s: float = 0.0


def why_no_hosts() -> str:
    """Empty where there can be some."""
    if os.name != "posix" or os.geteuid() != 0:
        return "namespaces of the network take root"
    if not shutil.which("ip"):
        return "there is no ip here; Debian has it in the package iproute2"
    return _why_not("--net")


def why_no_wires_and_clocks() -> str:
    if not os.access(delaying_wire.TUN, os.R_OK | os.W_OK):
        return f"{delaying_wire.TUN} cannot be opened"
    return _why_not("--time", "--fork", "--monotonic", "1")


def _why_not(*namespace: str) -> str:
    done = subprocess.run(["unshare", *namespace, "true"], check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"namespaces are not allowed here: {done.stderr.strip()}"


@contextmanager
def network_hosts(
    folder: Path,
    hosts: Sequence[str] = HOSTS,
    wires: Mapping[str, Wire] | None = None,
    ahead_s: Mapping[str, int] | None = None,
) -> Iterator[Path]:
    """Set up hosts, and yield the remote shell that reaches them. One test at a time has some."""
    clocks = [f"{host}) clocks='--time --kill-child --monotonic {by}';;" for host, by in (ahead_s or {}).items()]
    shell = folder / "remote-shell"
    shell.write_text(_SHELL.format(clocks="\n".join(clocks)))
    shell.chmod(0o755)
    with ExitStack() as stack:
        lock = stack.enter_context(Path(tempfile.gettempdir(), "fairlap-hosts.lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove_left(hosts)
        stack.callback(_remove_left, hosts)
        _ip(f"link add {_BRIDGE} type bridge")
        _ip(f"addr add {HERE}/24 dev {_BRIDGE}")
        _ip(f"link set {_BRIDGE} up")
        for host in hosts:
            name, outside = name_on(host), outside_of(host)
            names = _OF_NAMESPACES / name / "hosts"
            names.parent.mkdir(parents=True, exist_ok=True)
            names.write_text(f"127.0.0.1 localhost\n{host} {name}\n")
            _ip(f"netns add {name}")
            wire = (wires or {}).get(host)
            if wire is None:
                _ip(f"link add {outside} type veth peer name eth0 netns {name}")
            else:
                stack.enter_context(_delayed(name, outside, wire))
            _ip(f"link set {outside} master {_BRIDGE} up")
            _ip(f"-n {name} addr add {host}/24 dev eth0")
            _ip(f"-n {name} link set eth0 up")
            _ip(f"-n {name} link set lo up")
        yield shell


@contextmanager
def _delayed(name: str, outside: str, wire: Wire) -> Iterator[None]:
    command = [sys.executable, str(_WIRE), outside, name, str(wire.received_late_s), str(wire.sent_late_s)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == delaying_wire.READY
        yield
    finally:
        process.kill()
        process.communicate()


def cut(host: str) -> None:
    """Take its cable out: what it sends is lost, and so is what is sent to it."""
    _ip(f"link set {outside_of(host)} down")


def outside_of(host: str) -> str:
    """Name the end of the host's link that is outside of it."""
    return name_on(host).replace("-", "-v")


def _remove_left(hosts: Sequence[str]) -> None:
    """Also of a test that was killed."""
    for host in hosts:
        with suppress(subprocess.CalledProcessError):
            _ip(f"netns del {name_on(host)}")
        with suppress(subprocess.CalledProcessError):
            _ip(f"link del {outside_of(host)}")  # a namespace takes its own away later
        shutil.rmtree(_OF_NAMESPACES / name_on(host), ignore_errors=True)
    with suppress(subprocess.CalledProcessError):
        _ip(f"link del {_BRIDGE}")


def name_on(host: str) -> str:
    """By which the host calls itself."""
    return f"fairlap-{host.rpartition('.')[2]}"


def processes_on(host: str) -> list[int]:
    """Those that are left there."""
    found = subprocess.run(["ip", "netns", "pids", name_on(host)], check=True, capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True)
