"""Whose stream: one function that takes a stream from any framework. It imports none of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlap.errors import InvalidRequest

HIDDEN = "hidden"
"""The streams of a framework that does not expose them: all of a context's."""

_LARGEST_ADDRESS = 2**64 - 1
_HIDES_ITS_STREAMS = {"jax": "JAX", "jaxlib": "JAX", "tensorflow": "TensorFlow"}


@dataclass(frozen=True)
class StreamHandle:
    """A borrowed stream: its address (0, 1 and 2 are the default ones) and device; no address means hidden."""

    address: int | None
    device: int | None
    origin: str
    owner: object = field(default=None, repr=False, compare=False)  # keeps the stream alive while it is timed


def stream_of(stream: object, device: int | None = None) -> StreamHandle:
    """Find the CUDA stream behind an object.

    Takes a ``torch.cuda.Stream``; a CUDA ``torch.device`` or tensor, for PyTorch's current stream there; a CuPy stream
    or anything with the ``__cuda_stream__`` protocol; an ONNX Runtime session, or its provider options, with a
    ``user_compute_stream``; an integer address; and ``"hidden"`` or None for the streams of a framework that does
    not show them.
    """
    wanted = _device_number(device)
    found = _find(stream)
    if found.device is not None and wanted is not None and found.device != wanted:
        raise InvalidRequest(
            f"the stream is on CUDA device {found.device}, not on device {wanted}; "
            "leave device= out or hand over its stream"
        )
    return StreamHandle(found.address, wanted if found.device is None else found.device, found.origin, found.owner)


def _find(stream: object) -> StreamHandle:
    if stream is None or (isinstance(stream, str) and stream == HIDDEN):
        return StreamHandle(None, None, "hidden")
    if isinstance(stream, bool):
        raise InvalidRequest(f"a stream is an object or an address, not {stream!r}")
    if isinstance(stream, int):
        return StreamHandle(_address(stream), None, "address")
    for find in (_of_torch, _of_onnxruntime, _of_cupy, _of_protocol):
        found = find(stream)
        if found is not None:
            return found
    raise InvalidRequest(_refusal(stream))


def _address(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidRequest(f"the address of a stream must be a whole number, not {value!r}")
    address: int = value.__index__()
    if not 0 <= address <= _LARGEST_ADDRESS:
        raise InvalidRequest(f"the address of a stream must be between 0 and {_LARGEST_ADDRESS:#x}, not {address}")
    return address


def _device_number(device: object) -> int | None:
    if device is None:
        return None
    if isinstance(device, bool) or not isinstance(device, int) or device < 0:
        raise InvalidRequest(f"device must be the number of a CUDA device, not {device!r}")
    return device


def _of_torch(stream: object) -> StreamHandle | None:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None
    cuda_stream = getattr(torch.cuda, "Stream", None)
    if isinstance(cuda_stream, type) and isinstance(stream, cuda_stream):
        handle: Any = stream
        return StreamHandle(_address(handle.cuda_stream), handle.device.index, "torch stream", stream)
    if isinstance(stream, torch.Tensor):
        return _current_of_torch(torch, stream.device, "the tensor")
    if isinstance(stream, torch.device):
        return _current_of_torch(torch, stream, "the device")
    return None


def _current_of_torch(torch: Any, device: Any, what: str) -> StreamHandle:
    if device.type != "cuda":
        raise InvalidRequest(
            f"{what} is on {device}, which has no CUDA stream; leave stream= out to time on the CPU's clock"
        )
    current = torch.cuda.current_stream(device)
    return StreamHandle(_address(current.cuda_stream), current.device.index, "torch current stream", current)


def _of_cupy(stream: object) -> StreamHandle | None:
    if type(stream).__module__.partition(".")[0] != "cupy" or not hasattr(stream, "ptr"):
        return None
    handle: Any = stream
    on_device = getattr(handle, "device_id", None)
    # CuPy uses -1 for the current device.
    known = isinstance(on_device, int) and on_device >= 0
    return StreamHandle(_address(handle.ptr), on_device if known else None, "CuPy stream", stream)


def _of_protocol(stream: object) -> StreamHandle | None:
    protocol: Any = getattr(stream, "__cuda_stream__", None)
    if protocol is None or isinstance(stream, type):
        return None
    if callable(protocol):
        protocol = protocol()
    if not (isinstance(protocol, tuple) and len(protocol) == 2):
        raise InvalidRequest(f"__cuda_stream__ of {_kind(stream)} gave {protocol!r}, not a version and an address")
    version, address = protocol
    if version != 0:
        raise InvalidRequest(f"__cuda_stream__ of {_kind(stream)} speaks version {version!r}; only version 0 is known")
    return StreamHandle(_address(address), None, "__cuda_stream__", stream)


def _of_onnxruntime(stream: object) -> StreamHandle | None:
    is_session = hasattr(stream, "get_provider_options") and hasattr(stream, "get_providers")
    if not is_session and not isinstance(stream, Mapping | list | tuple):
        return None
    source: Any = stream
    for options in _option_sets(source.get_provider_options() if is_session else source):
        given = options.get("user_compute_stream")
        if given in (None, "", "0", 0):
            continue
        try:
            address = int(given)
        except (TypeError, ValueError):
            raise InvalidRequest(f"user_compute_stream must be an address, not {given!r}") from None
        on_device = str(options.get("device_id", ""))
        return StreamHandle(
            _address(address),
            int(on_device) if on_device.isdecimal() else None,
            "ONNX Runtime user_compute_stream",
            stream,
        )
    what = "the ONNX Runtime session was made" if is_session else "these are options"
    raise InvalidRequest(
        f"{what} without a user_compute_stream, so its stream is not known; make a stream, give its address to the "
        "CUDA provider as user_compute_stream, or time with method='kernel_sum' and stream='hidden'"
    )


def _option_sets(source: object) -> Iterator[Mapping[str, Any]]:
    """Options as a session gives them (by provider), as one provider takes them, or paired with provider names."""
    if isinstance(source, Mapping):
        yield source
        yield from (value for value in source.values() if isinstance(value, Mapping))
    elif isinstance(source, list | tuple):
        for part in source:
            yield from _option_sets(part)


def _refusal(stream: object) -> str:
    framework = _HIDES_ITS_STREAMS.get(type(stream).__module__.partition(".")[0])
    if framework is not None:
        return (
            f"{framework} does not show the stream it works on; pass stream='hidden' with method='kernel_sum' or "
            "method='context_span'"
        )
    if "Event" in type(stream).__name__:
        return f"{_kind(stream)} is an event, not a stream"
    return (
        f"no CUDA stream is known in {_kind(stream)}; pass a torch or CuPy stream, an ONNX Runtime session, an integer "
        "address, or an object with __cuda_stream__"
    )


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
