"""The process of a callable that is not trusted: maps the memory, enters the sandbox, then imports and calls it.

Nothing here protects anything once the callable is imported, since that may change every line of it. What protects is
the sandbox, the memory that this process cannot write, and that the parent believes nothing but answers it has checked.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import mmap
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from fairlap.machine.programs.guardian import end_with_parent
from fairlap.machine.programs.sandbox import confine, limit

DONE, RAISED, OTHER_FORM, NOT_IMPORTED, NO_DEVICE_MEMORY = 1, 2, 3, 4, 5
DRIVER_VARIABLE = "FAIRLAP_LIBCUDA"
LONGEST_TEXT_BYTES = 400
TEXT_AT = 64  # bytes into the first page of the answers, after the status and the length of the text
_MOST_FILES = 128
_MOST_FILES_ON_DEVICE = 1024  # CUDA opens some for each device, and for each context
_LARGEST_FILE_BYTES = 1 << 24


class Orders(msgspec.Struct, frozen=True):
    """What the parent wants of a contestant. ``place`` is a file or a module; empty for the empty call."""

    place: str
    name: str
    arguments: Any  # a Layout, which is decoded after NumPy may be imported
    answers: Any
    slots: int
    inputs: tuple[int, int]  # the descriptor and the bytes of the memory
    answered: tuple[int, int]
    ring: int
    cpu_s: float
    memory_bytes: int | None
    device: Any = None  # DeviceOrders, likewise


def main() -> None:
    orders = msgspec.json.decode(sys.stdin.buffer.read(), type=Orders)
    end_with_parent(signal.SIGKILL)
    _end_first_where_memory_runs_out()
    inputs = _mapped(*orders.inputs, writable=False)
    answered = _mapped(*orders.answered, writable=True)
    for fd, _ in (orders.inputs, orders.answered):
        os.close(fd)
    limit(orders.cpu_s, orders.memory_bytes)
    files = _MOST_FILES_ON_DEVICE if orders.device else _MOST_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE_BYTES, _LARGEST_FILE_BYTES))
    ring = socket.socket(fileno=orders.ring)
    is_file = orders.place.endswith(".py")
    readable = [Path(orders.place)] if is_file else []
    if orders.device and (driver := os.environ.get(DRIVER_VARIABLE)):
        ctypes.CDLL(driver)  # it may have files of its own to open, which cannot be opened later
        readable.append(Path(driver))
    confine(readable, [], starts="nothing", gpu=orders.device is not None)
    _serve(orders, inputs, answered, ring)


def _end_first_where_memory_runs_out() -> None:
    """Shared memory has no limit, and it can have any amount of that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _serve(orders: Orders, inputs: Any, answered: Any, ring: socket.socket) -> None:
    import numpy as np

    header = np.frombuffer(inputs, dtype=np.int64, count=2)
    state = np.frombuffer(answered, dtype=np.int64, count=2)

    def report(status: int, error: str = "") -> None:
        text = error.encode("utf-8", "replace")[:LONGEST_TEXT_BYTES]
        answered[TEXT_AT : TEXT_AT + len(text)] = text
        state[1], state[0] = len(text), status
        ring.send(b"!")

    try:
        slots = _slots(orders, inputs, answered)
    except BaseException as error:
        report(NO_DEVICE_MEMORY if orders.device else NOT_IMPORTED, _described(error))
        return
    try:
        call = slots.empty_call() if not orders.place else _imported(orders)
    except BaseException as error:
        report(NOT_IMPORTED, _described(error))
        return
    gc.collect()
    gc.disable()
    report(DONE)
    while ring.recv(1):
        first, count = header.tolist()
        try:
            form = slots.run(call, first, count)
            report(OTHER_FORM, form) if form else report(DONE)
        except BaseException as error:
            report(RAISED, _described(error))


def _slots(orders: Orders, inputs: Any, answered: Any) -> Any:
    """Return those of the device or of the host. None of their code runs before the sandbox."""
    if orders.device:
        from fairlap.scenarios.callables.untrusted.on_device.device_slots import DeviceSlots

        return DeviceSlots(orders.arguments, orders.answers, orders.device, orders.slots)
    import numpy as np

    from fairlap.scenarios.callables.untrusted.slots import Slots

    given, kept = (np.frombuffer(each, dtype=np.uint8)[mmap.PAGESIZE :] for each in (inputs, answered))
    return Slots(orders.arguments, orders.answers, given, kept, orders.slots)


def _mapped(fd: int, nbytes: int, *, writable: bool) -> mmap.mmap:
    """Map what the other process shared, every page at once, so that no call pays for its first touch."""
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return mmap.mmap(fd, nbytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=access)


def _imported(orders: Orders) -> Callable[..., Any]:
    if orders.place.endswith(".py"):
        file = Path(orders.place)
        name = f"_contestant_{file.stem}"  # and not that of a module which it may need itself
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file.name} is not a module of Python")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(orders.place)
    found = _part_of(module, orders)
    if not callable(found):
        raise TypeError(f"{orders.name} is not callable (its type is {type(found).__name__})")
    function: Callable[..., Any] = found
    return function


def _part_of(module: Any, orders: Orders) -> Any:
    from fairlap.errors import InvalidRequest
    from fairlap.suggestions import part_named

    try:
        return part_named(module, orders.name, Path(orders.place).name)
    except InvalidRequest as error:
        raise AttributeError(str(error)) from None


def _described(error: BaseException) -> str:
    from fairlap.errors import described

    return described(error)


if __name__ == "__main__":
    main()
