"""A wire between this machine and a network namespace on which each frame takes at least so long, in each direction.

    python delaying_wire.py OUTSIDE NAMESPACE SECONDS_IN SECONDS_OUT

Both of its ends are TAP devices, ``OUTSIDE`` here and ``eth0`` in the namespace: not every kernel has netem. It prints
a line when both are there, and ends when its standard input does.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

TUN, READY = "/dev/net/tun", "ready\n"
_STDIN = 0
_SET_NAME, _TAP, _NO_HEADER = 0x400454CA, 0x0002, 0x1000
_NEW_NET, _LARGEST_FRAME = 0x40000000, 65536


def tap(name: str) -> int:
    """Make one in the namespace of this thread; where its frames come from afterwards does not matter."""
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _SET_NAME, struct.pack("16sH22x", name.encode(), _TAP | _NO_HEADER))
    return device


def tap_in(namespace: str, name: str) -> int:
    here, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    enter = ctypes.CDLL(None, use_errno=True).setns
    try:
        if enter(there, _NEW_NET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
        return tap(name)
    finally:
        enter(here, _NEW_NET)
        os.close(here)
        os.close(there)


def forward(outside: int, inside: int, in_s: float, out_s: float) -> None:
    """Hold each frame until it is due; those of one direction stay in order."""
    held: dict[int, deque[tuple[float, bytes]]] = {outside: deque(), inside: deque()}  # by where they came from
    late_s, to = {outside: in_s, inside: out_s}, {outside: inside, inside: outside}
    while True:
        due_s = min((frames[0][0] for frames in held.values() if frames), default=None)
        wait_s = None if due_s is None else max(due_s - time.monotonic(), 0.0)
        ready, _, _ = select.select([outside, inside, _STDIN], [], [], wait_s)
        for came_from in ready:
            if came_from == _STDIN:
                return
            held[came_from].append((time.monotonic() + late_s[came_from], os.read(came_from, _LARGEST_FRAME)))
        for came_from, frames in held.items():
            while frames and frames[0][0] <= time.monotonic():
                _send(to[came_from], frames.popleft()[1])


def _send(device: int, frame: bytes) -> None:
    """Lose a frame that cannot be sent, as any wire does; TCP sends it again."""
    try:
        os.write(device, frame)
    except OSError:
        return


if __name__ == "__main__":
    here, namespace, in_s, out_s = sys.argv[1:]
    both = tap(here), tap_in(namespace, "eth0")
    print(READY, end="", flush=True)
    forward(*both, float(in_s), float(out_s))
