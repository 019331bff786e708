"""Two hosts on this machine: network namespaces with addresses of their own, which see the same files.

A remote shell starts commands in them. On each, the name of the machine means the host's own address, as it does on
hosts that are set up well. Takes root and iproute2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_NETWORK = "10.213.77"
HOSTS = (f"{_NETWORK}.2", f"{_NETWORK}.3")
_BRIDGE = "fairlap-br"
_OF_NAMESPACES = Path("/etc/netns")  # whose files take the place of those in /etc

# Like ssh, it joins the words of the command and hands them to a shell on the host, which has its own name.
_SHELL = """#!/bin/sh
name=fairlap-${1##*.}
shift
exec ip netns exec "$name" unshare --uts /bin/sh -c 'hostname "$0" && exec /bin/sh -c "$1"' "$name" "$*"
"""


def why_no_hosts() -> str:
    if os.name != "posix" or os.geteuid() != 0:
        return "namespaces of the network take root"
    return "" if shutil.which("ip") else "there is no ip here; Debian has it in the package iproute2"


@contextmanager
def two_hosts(folder: Path) -> Iterator[Path]:
    """Set up two hosts, and yield the remote shell that reaches them."""
    shell = folder / "remote-shell"
    shell.write_text(_SHELL)
    shell.chmod(0o755)
    with ExitStack() as stack:
        _ip(f"link add {_BRIDGE} type bridge")
        stack.callback(_ip, f"link del {_BRIDGE}")
        _ip(f"addr add {_NETWORK}.1/24 dev {_BRIDGE}")
        _ip(f"link set {_BRIDGE} up")
        for host in HOSTS:
            name, outside = name_on(host), name_on(host).replace("-", "-v")
            hosts = _OF_NAMESPACES / name / "hosts"
            hosts.parent.mkdir(parents=True, exist_ok=True)
            stack.callback(shutil.rmtree, hosts.parent, ignore_errors=True)
            hosts.write_text(f"127.0.0.1 localhost\n{host} {name}\n")
            _ip(f"netns add {name}")
            stack.callback(_ip, f"netns del {name}")
            _ip(f"link add {outside} type veth peer name eth0 netns {name}")
            stack.callback(_ip, f"link del {outside}")  # a namespace takes its own away later
            _ip(f"link set {outside} master {_BRIDGE} up")
            _ip(f"-n {name} addr add {host}/24 dev eth0")
            _ip(f"-n {name} link set eth0 up")
            _ip(f"-n {name} link set lo up")
        yield shell


def name_on(host: str) -> str:
    """By which the host calls itself."""
    return f"fairlap-{host.rpartition('.')[2]}"


def processes_on(host: str) -> list[int]:
    """Those that are left there."""
    found = subprocess.run(["ip", "netns", "pids", name_on(host)], check=True, capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True)
