"""What a caller may ask of a timing on a stream, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairlap import quantity_text
from fairlap.engine import _native
from fairlap.engine.arguments import one_of, truth
from fairlap.engine.cuda.libraries import native_errors_explained
from fairlap.engine.cuda.streams import StreamHandle
from fairlap.engine.native_functions import NativeFunction, native_function_of
from fairlap.engine.timed_calls import native_work, python_work
from fairlap.errors import InvalidRequest

# The memory behind arguments: arrays and tensors of any framework show their addresses.
Memory = tuple[int, int] | int
"""The first address and the one after the last, or the identity of an object that shows no address."""


def memory_of(argument: object) -> Memory:
    size, address = _size_of(argument), _address_of(argument)
    return id(argument) if address is None else (address, address + size)


def memory_behind(arguments: Iterable[object]) -> int:
    """Add up the bytes behind arguments; what several of them share counts once."""
    without_address: dict[int, int] = {}
    spans = []
    for argument in arguments:
        memory = memory_of(argument)
        if isinstance(memory, int):
            without_address[memory] = _size_of(argument)
        else:
            spans.append(memory)
    total, reached = sum(without_address.values()), 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _size_of(argument: object) -> int:
    size = getattr(argument, "nbytes", 0)
    return size if isinstance(size, int) else 0


def _address_of(argument: object) -> int | None:
    """Of PyTorch's tensors by their own method, since one that needs a gradient has no array interface."""
    known: Any = argument
    try:
        if callable(getattr(known, "data_ptr", None)):
            return int(known.data_ptr())
        interface = getattr(known, "__cuda_array_interface__", None) or getattr(known, "__array_interface__", None)
        return None if interface is None else int(interface["data"][0])
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
        return None


Method = Literal["device_span", "context_span", "kernel_sum", "host_issue"]
Gate = Literal["auto", "stream_wait", "spin", "none"]

METHODS = ("device_span", "context_span", "kernel_sum", "host_issue")
GATES = ("auto", "stream_wait", "spin", "none")
CACHES = ("warm", "flush")
_ROTATION_FILLS_THE_CACHE = 3


@dataclass(frozen=True)
class Rotate:
    """A cold cache by turns: every call takes the next of these sets of arguments.

    Together the sets should be several times the device's L2 cache. What fits into it is refused, since every call
    would find it warm; less than three times the cache, and sizes that are not known, are noticed on the result.
    """

    sets: Sequence[tuple[object, ...]]

    def __post_init__(self) -> None:
        if isinstance(self.sets, str) or not isinstance(self.sets, Sequence) or len(self.sets) < 2:
            raise InvalidRequest("Rotate takes two or more sets of arguments, each a tuple")
        for arguments in self.sets:
            if not isinstance(arguments, tuple):
                raise InvalidRequest(f"each set of arguments must be a tuple, not {type(arguments).__name__}")

    def bytes_known(self) -> int:
        """Add up the sizes of the arguments whose size is known. Memory that several of them share counts once."""
        return memory_behind(argument for arguments in self.sets for argument in arguments)

    def rotated_bytes(self) -> int:
        """Leave out what is in every set, which every call uses again."""
        in_every_set = set.intersection(*({memory_of(argument) for argument in each} for each in self.sets))
        shared = memory_behind(argument for argument in self.sets[0] if memory_of(argument) in in_every_set)
        return self.bytes_known() - shared

    def fits_into(self, cache_bytes: int) -> bool:
        return 0 < self.bytes_known() < cache_bytes

    def is_small_for(self, cache_bytes: int) -> bool:
        return self.bytes_known() > 0 and self.rotated_bytes() < _ROTATION_FILLS_THE_CACHE * cache_bytes


@dataclass(frozen=True)
class StreamRequest:
    """Everything but the work itself."""

    method: Method
    gate: Gate
    cache: Literal["warm", "flush"] | Rotate
    graph: bool
    guard: bool


def checked_request(
    stream: StreamHandle,
    *,
    method: object,
    gate: object,
    cache: object,
    graph: object,
    guard: object,
    args: tuple[object, ...],
    calls: int,
    done: object,
) -> StreamRequest:
    method = one_of("method", method, METHODS)
    gate = one_of("gate", gate, GATES)
    if not isinstance(cache, Rotate):
        cache = one_of("cache", cache, CACHES, "or Rotate([...])")
    graph, guard = truth("graph", graph), truth("guard", guard)
    if stream.address is None and method == "device_span":
        raise InvalidRequest(
            "device_span needs the stream that the work runs on; pass stream=, or use method='kernel_sum' or "
            "method='context_span' for a framework that hides its streams"
        )
    if stream.address is None and graph:
        raise InvalidRequest("a graph is captured on a stream; pass stream=")
    if gate not in ("auto", "none") and method != "device_span":
        raise InvalidRequest(f"a gate holds one stream and goes with method='device_span', not with {method!r}")
    if cache == "flush" and method == "host_issue":
        raise InvalidRequest("host_issue does not look at the device, so there is no cache to flush")
    if cache == "flush" and calls > 1:
        raise InvalidRequest(
            "cache='flush' with several calls per sample would find the cache warm from the second call on"
        )
    if isinstance(cache, Rotate) and args:
        raise InvalidRequest("with cache=Rotate([...]) the arguments come from its sets; leave args= out")
    if graph and done is not None:
        raise InvalidRequest(
            "a captured graph is replayed without the callable, so done= has nothing to wait for; leave it out"
        )
    return StreamRequest(method, gate, cache, graph, guard)  # type: ignore[arg-type]


def require_cold(request: StreamRequest, stream: StreamHandle) -> None:
    """Refuse a rotation that the device's L2 cache holds whole. The framework must have used the device."""
    cache = request.cache
    if not isinstance(cache, Rotate) or request.method == "host_issue":
        return
    with native_errors_explained():
        cache_bytes = _native.stream_cache_bytes(stream.address, -1 if stream.device is None else stream.device)
    if cache.fits_into(cache_bytes):
        raise InvalidRequest(
            f"the {len(cache.sets)} sets of arguments are {quantity_text.size(cache.bytes_known())} in all and fit "
            f"into the L2 cache of {quantity_text.size(cache_bytes)}, so calls find it warm; pass more or larger sets",
            code="E_ROTATION",
        )


def works_for(
    fn: Callable[..., object] | NativeFunction | object,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    done: Callable[[Any], object] | NativeFunction | object | None,
    cache: object,
) -> list[_native.PythonCall | _native.NativeCall]:
    """One call for each set of arguments, to be taken in turn."""
    native = native_function_of(fn)
    sets = list(cache.sets) if isinstance(cache, Rotate) else [args]
    if native:
        return [native_work(native, arguments, kwargs, done) for arguments in sets]
    return [python_work(fn, arguments, kwargs, done) for arguments in sets]
