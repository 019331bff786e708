"""Kernels of PTX and cubin files, loaded and launched natively: ``kernel.ptx:name`` with its grid and arguments."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairlap.engine import _native
from fairlap.engine.cuda.device_completion import own_stream
from fairlap.engine.cuda.libraries import DeviceFailed, native_errors_explained
from fairlap.engine.native_functions import NativeFunction
from fairlap.errors import InvalidRequest

_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_SCALARS = {
    "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
    "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip
_SIZES = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_BUFFER = "buffer"


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched. An argument is the bytes of a value, or the size of a buffer of zeros."""

    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    arguments: Sequence[bytes | int] = ()


@dataclass(frozen=True)
class LoadedKernels:
    """Kernels on one stream: by name, what launches each of them and what waits for it."""

    stream: _native.OwnStream
    launches: Mapping[str, NativeFunction]
    waits: Mapping[str, NativeFunction]


@contextmanager
def loaded_kernels(names: Sequence[str], launch: Launch, device: int) -> Iterator[LoadedKernels]:
    """Their context is current on this thread meanwhile, so that a launch is the driver's launch and nothing else."""
    stream = own_stream(device)
    kernels = {name: _loaded(name, launch, stream) for name in names}
    with ExitStack() as entered:
        for kernel in kernels.values():
            kernel.enter()
            entered.callback(kernel.leave)
        yield LoadedKernels(
            stream,
            {
                name: NativeFunction(kernel.launch_address, kernel.context, name, owner=kernel)
                for name, kernel in kernels.items()
            },
            {
                name: NativeFunction(kernel.wait_address, kernel.context, f"wait for {name}", owner=kernel)
                for name, kernel in kernels.items()
            },
        )


def _loaded(name: str, launch: Launch, stream: _native.OwnStream) -> _native.LoadedKernel:
    path, _, entry = name.rpartition(":")
    image = _image(path)
    if path.endswith(".ptx"):
        entries = _ENTRY.findall(image.decode(errors="replace"))
        if entry not in entries:
            raise InvalidRequest(f"{path} has no kernel named {entry!r}; it has {', '.join(entries) or 'none'}")
    try:
        with native_errors_explained():
            return _native.LoadedKernel(
                stream,
                image,
                entry,
                grid=launch.grid,
                block=launch.block,
                shared_bytes=launch.shared_bytes,
                arguments=list(launch.arguments),
            )
    except DeviceFailed as error:
        raise InvalidRequest(f"{name} cannot be loaded: {error}") from None


def _image(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from None


def extent(text: str) -> tuple[int, int, int]:
    """``128`` or ``16x16`` or ``8x8x4``."""
    parts = re.split(r"[x,]", text)
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InvalidRequest(f"{text!r} is not an extent such as 128, 16x16 or 8x8x4")
    sizes = [*map(int, parts), 1, 1]
    return sizes[0], sizes[1], sizes[2]


def kernel_arguments(text: str) -> tuple[bytes | int, ...]:
    """``buffer:4MiB,i32:1024,f32:2.5``: in the order of the kernel's parameters."""
    return tuple(_argument(part.strip()) for part in text.split(",") if part.strip())


def _argument(text: str) -> bytes | int:
    kind, colon, value = text.partition(":")
    if kind == _BUFFER:
        return _buffer_bytes(value)
    if not colon or kind not in _SCALARS:
        known = ", ".join(_SCALARS)
        raise InvalidRequest(f"{text!r} is not an argument such as buffer:4MiB or i32:7; the types are {known}")
    number = _number(value, whole=kind[0] != "f")
    try:
        return struct.pack(f"<{_SCALARS[kind]}", number)
    except (struct.error, OverflowError):
        raise InvalidRequest(f"{value!r} does not fit into {kind}") from None


def _number(value: str, *, whole: bool) -> int | float:
    try:
        return int(value, 0) if whole else float(value)
    except ValueError:
        raise InvalidRequest(f"{value!r} is not a {'whole number' if whole else 'number'}") from None


def _buffer_bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([KMG]iB|B|)", text)
    size = int(found[1]) * _SIZES[found[2]] if found else 0
    if size == 0:
        raise InvalidRequest(f"{text!r} is not the size of a buffer, such as 4096 or 4MiB")
    return size
