"""A GPU's clock that is locked for the length of a race, where its user may.

A separate process unlocks it when its input closes, which a crash of this process does too. NVML does not report an
earlier lock, so that one is removed as well.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.machine.hardware.cuda_devices import Board, board_of, each_device
from fairlap.machine.hardware.gpu import NvmlAbsent, open_nvml

BASE = "base"
CODE = "E_LOCK_CLOCKS"
_MOST_MHZ = 10_000
_READY = "ready"
_WATCHDOG = "import sys; from fairlap.machine.hardware.locked_clocks import watch; watch(int(sys.argv[1]))"


def require_clock(clock: str, device: str) -> None:
    """Refuse what is neither ``base`` nor a clock in MHz, and a lock on a processor."""
    if not clock:
        return
    if device == "cpu":
        raise InvalidRequest("--lock-clocks locks the clock of a GPU; add --device cuda", code=CODE)
    if clock != BASE and not (clock.isdecimal() and 0 < int(clock) <= _MOST_MHZ):
        raise InvalidRequest(f"--lock-clocks must be base or a clock in MHz, such as 1410 (got {clock!r})", code=CODE)


@contextmanager
def locked_clocks(device: str, clock: str) -> Iterator[None]:
    """Lock the clock of the device, or of several ("cuda:0,cuda:1"); nothing where ``clock`` is empty.

    Raises NotAvailable where that is not allowed.
    """
    if not clock:
        yield
        return
    require_clock(clock, device)  # which a plan from elsewhere has not been through
    with ExitStack() as locked:
        for each in each_device(device):
            locked.enter_context(_locked(each, clock))
        yield


@contextmanager
def _locked(device: str, clock: str) -> Iterator[None]:
    board = board_of(device)
    if not isinstance(board, Board) or not board.is_whole:
        why = board if isinstance(board, str) else "it is an instance of a divided device"
        raise NotAvailable(f"cannot lock the clock of {device}: {why}", code=CODE)
    with _watchdog(board.index) as watchdog:
        try:
            _lock(device, board.index, clock)
        except NotAvailable:
            watchdog.kill()  # there is nothing to give back
            raise
        yield


def watch(index: int) -> None:
    """Wait until the input ends, and lift the lock. Signals to the race must not end this process before."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    print(_READY, flush=True)
    sys.stdin.buffer.read()
    import pynvml

    try:
        with open_nvml() as nvml:
            nvml.nvmlDeviceResetGpuLockedClocks(nvml.nvmlDeviceGetHandleByIndex(index))
    except (NvmlAbsent, pynvml.NVMLError) as error:
        sys.exit(f"cannot unlock the clock of GPU {index}: {error}; run nvidia-smi -i {index} --reset-gpu-clocks")


@contextmanager
def _watchdog(index: int) -> Iterator[subprocess.Popen[str]]:
    """Start the process that gives the clock back, which waits before anything is locked."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = subprocess.Popen(
        [sys.executable, "-c", _WATCHDOG, str(index)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        start_new_session=True,
    )
    with started:  # its input is closed in the end, and it is waited for
        assert started.stdout is not None
        if started.stdout.readline().strip() != _READY:
            raise NotAvailable("cannot lock clocks: the process that would give them back did not start", code=CODE)
        yield started


def _lock(device: str, index: int, clock: str) -> None:
    import pynvml

    try:
        with open_nvml() as nvml:
            mhz: Any = nvml.NVML_CLOCK_LIMIT_ID_TDP if clock == BASE else int(clock)
            nvml.nvmlDeviceSetGpuLockedClocks(nvml.nvmlDeviceGetHandleByIndex(index), mhz, mhz)
    except NvmlAbsent as reason:
        raise NotAvailable(f"cannot lock the clock of {device}: {reason}", code=CODE) from None
    except pynvml.NVMLError as error:
        raise NotAvailable(f"cannot lock the clock of {device}: {error}", code=CODE) from None
