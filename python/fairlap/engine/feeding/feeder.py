"""Feeding: batches gathered natively by threads ahead of the consumer, and lent to any framework without a copy.

Batches are in host memory, or are copied to a CUDA device ahead of the consumer, out of pinned memory on a stream of
the feeder's own.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from fairlap.engine import _native
from fairlap.engine.arguments import number_of, one_of, path_text, whole_number
from fairlap.engine.feeding.npy_header import npy_header
from fairlap.errors import FairlapError, InvalidRequest, NotAvailable, shown
from fairlap.lazily import lookup

if TYPE_CHECKING:
    import numpy as np

    from fairlap.engine._native import Batch, BatchReleased, CopyTimes, LinkFailed, StallTimes

__all__ = ["Batch", "BatchReleased", "CopyTimes", "Feeder", "FeedingFailed", "LinkFailed", "RawFile", "StallTimes"]
_NATIVE = ("Batch", "BatchReleased", "CopyTimes", "LinkFailed", "StallTimes")

__getattr__ = lookup(__name__, dict.fromkeys(_NATIVE, "fairlap.engine._native"))

SLOTS = 4
PATIENCE_S = 10.0
_MOST = 2**63 - 1
_MOST_SLOTS = 2**16
_MOST_THREADS = 2**10


class FeedingFailed(FairlapError, RuntimeError):
    """A batch could not be fed; the message says which and why."""


@dataclass(frozen=True)
class RawFile:
    """Little-endian samples one after the other in a file, all of one shape. Without ``samples``, all there are."""

    path: str | os.PathLike[str]
    dtype: str
    sample_shape: tuple[int, ...] = ()
    offset: int = 0
    samples: int | None = None


class Feeder:
    """Batches of samples from a ``.npy`` file, a ``RawFile`` or a NumPy array, in order or shuffled by ``seed``.

    Two feeders with the same seed over equally many samples draw the same ones, so labels can be fed by a second one.
    ``epochs=None`` is without end. ``last`` decides what becomes of samples that do not fill an epoch's last batch: a
    smaller batch, nothing, or a batch filled up from the epoch's beginning. uint8 can become float32
    (``value * scale + offset``), float32 bfloat16, and int64 int32.

    A batch can be given to anything that takes DLPack, such as ``torch.from_dlpack(batch)``; ONNX Runtime's IOBinding
    takes ``batch.pointer`` and ``batch.shape``; OpenVINO takes ``numpy.from_dlpack(batch)`` as shared memory. Its
    memory is used again when the batch and every tensor made from it are gone. A pointer holds nothing: keep the batch.

    With ``device="cuda"`` or ``"cuda:1"`` batches are on that device, in the context of the framework that has used it.
    The consumer's stream, which DLPack names, waits for the copy, and memory is used again only after what that stream
    was given until the release. A consumer that works on a batch on other streams passes their addresses to
    ``release``; one that names none, or takes the pointer, makes the feeder wait for all that the device does.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | RawFile | np.ndarray,
        *,
        batch: int,
        slots: int = SLOTS,
        threads: int = 1,
        seed: int | None = None,
        epochs: int | None = 1,
        last: Literal["keep", "drop", "wrap"] = "keep",
        dtype: str | None = None,
        scale: float = 1.0,
        offset: float = 0.0,
        layout: Literal["as_is", "nhwc_to_nchw", "nchw_to_nhwc"] = "as_is",
        device: str = "cpu",
    ) -> None:
        cuda_device = _cuda_device(device)
        batch = whole_number("batch", batch, least=1, most=_MOST)
        slots = whole_number("slots", slots, least=1, most=_MOST_SLOTS)
        threads = whole_number("threads", threads, least=1, most=_MOST_THREADS)
        epochs = None if epochs is None else whole_number("epochs", epochs, least=1, most=_MOST)
        seed = None if seed is None else whole_number("seed", seed, least=0, most=_MOST)
        if dtype is not None:
            _check_name("dtype", dtype)
        with _native_errors_explained():
            self._native = _native.Feeder(
                _source_of(source),
                batch=batch,
                slots=slots,
                threads=threads,
                seed=seed,
                epochs=epochs or 0,
                last=_native.LastBatch[one_of("last", last, _native.LastBatch.__members__)],
                type=dtype,
                scale=number_of("scale", scale),
                offset=number_of("offset", offset),
                layout=_native.Layout[one_of("layout", layout, _native.Layout.__members__)],
                cuda_device=cuda_device,
            )
        self._take = self._native.next  # looked up once: this is done between every two hand-overs
        self._closed = False

    def next(self, patience_s: float = PATIENCE_S) -> Batch | None:
        """Take the next batch, or None at the end.

        While all slots are held by batches that were not released, no batch can come; the call waits ``patience_s`` for
        one.
        """
        if patience_s is not PATIENCE_S:
            patience_s = number_of("patience_s", patience_s)
        try:
            return self._take(patience_s)
        except _native_failures() as error:
            raise FeedingFailed(str(error)) from None

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        try:
            batch = self._take(PATIENCE_S)
        except _native_failures() as error:
            raise FeedingFailed(str(error)) from None
        if batch is None:
            raise StopIteration
        return batch

    def __len__(self) -> int:
        if self._native.batches == 0:
            raise TypeError("a feeder without a number of epochs has no length")
        return self._native.batches

    @property
    def stalls(self) -> StallTimes:
        """Where the consumer's time went since the feeder was made, or until it was closed."""
        with _native_errors_explained():
            return self._native.stalls

    def time_copies(self, on: bool = True) -> None:
        """Begin to time the copies of the batches that follow, or end that; each batch then takes some µs longer."""
        with _native_errors_explained():
            self._native.time_copies(on)

    @property
    def copy_times(self) -> CopyTimes | None:
        """How long timed copies took, and how much of that was behind work; None in host memory, or if none were timed.

        Work on a batch is the time from when the consumer's stream has it until that stream gets to the release. The
        first copies after ``time_copies``, two for each slot, are not counted.
        """
        return self._native.copy_times

    @property
    def host_node(self) -> int | None:
        """The memory node of the pinned slots, to which the device is attached; None where it is not known.

        A container may forbid to move memory, and then it is not.
        """
        return self._native.host_node

    def close(self) -> None:
        """End the threads. Batches that are still held stay valid, and cause a ResourceWarning."""
        if self._closed:
            return
        self._closed = True
        held = self._native.close()
        if held:
            numbers = ", ".join(str(number) for number in held)
            warnings.warn(
                f"the feeder was closed while batches were held: {numbers}. Release each, or drop it and what was "
                "made from it",
                ResourceWarning,
                stacklevel=2,
            )

    def __enter__(self) -> Feeder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def require_readable_npy(path: str | os.PathLike[str]) -> None:
    """Refuses, with the reason, a ``.npy`` file that no feeder could read. None of its samples is looked at."""
    with _native_errors_explained():
        _of_npy(path_text("the path", path))


def _native_failures() -> tuple[type[Exception], ...]:
    """Name them when they are needed, so that the engine is loaded no earlier."""
    return (_native.BatchFailed, _native.FeederStopped, _native.LinkFailed)


@contextmanager
def _native_errors_explained() -> Iterator[None]:
    try:
        yield
    except (_native.BadFeed, _native.BadStream) as error:
        raise InvalidRequest(str(error)) from None
    except _native.CudaUnavailable as error:
        raise NotAvailable(f"a feeder cannot deliver to a CUDA device here: {error}") from None
    except _native_failures() as error:
        raise FeedingFailed(str(error)) from None
    except MemoryError:
        raise NotAvailable("there is not enough memory for the slots; ask for fewer, or for a smaller batch") from None


def _cuda_device(device: object) -> int | None:
    """None for the CPU, -1 for whichever device the framework uses."""
    if device == "cpu":
        return None
    named = re.fullmatch(r"cuda(?::([0-9]{1,4}))?", device) if isinstance(device, str) else None
    if named is None:
        raise InvalidRequest(f"a feeder delivers to cpu, cuda or cuda:N, not to {shown(device)}")
    return -1 if named[1] is None else int(named[1])


def _check_name(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} must be a name in quotes, not {shown(value)}")


def _source_of(source: object) -> _native.FeedSource:
    if isinstance(source, RawFile):
        return _of_raw_file(source)
    if isinstance(source, str | os.PathLike):
        return _of_npy(path_text("the samples' path", source))
    return _of_array(source)


def _of_npy(path: str) -> _native.FeedSource:
    """Errors name the file, too."""
    header = npy_header(path)
    samples, *of_a_sample = header.shape
    try:
        return _native.feed_from_raw(path, header.offset, header.kind, of_a_sample, samples)
    except _native.BadFeed as error:
        raise InvalidRequest(str(error) if path in str(error) else f"{path}: {error}") from None


def _of_raw_file(raw: RawFile) -> _native.FeedSource:
    _check_name("dtype", raw.dtype)
    if not isinstance(raw.sample_shape, Sequence) or isinstance(raw.sample_shape, str):
        raise InvalidRequest(
            f"sample_shape must be a tuple of whole numbers such as (3, 224, 224), not {shown(raw.sample_shape)}"
        )
    return _native.feed_from_raw(
        path_text("a RawFile's path", raw.path),
        whole_number("offset", raw.offset, least=0, most=_MOST),
        raw.dtype,
        [whole_number("every extent of sample_shape", each, least=1, most=_MOST) for each in raw.sample_shape],
        0 if raw.samples is None else whole_number("samples", raw.samples, least=1, most=_MOST),
    )


def _of_array(array: object) -> _native.FeedSource:
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise InvalidRequest(f"samples come from a path, a RawFile or a NumPy array, not from {shown(array)}")
    if _is_mapped(array):
        raise InvalidRequest(
            "this array is mapped from a file, and a file that shrinks under it would end the process; "
            "give the file's path, or a RawFile"
        )
    if array.ndim == 0 or not array.flags.c_contiguous:
        raise InvalidRequest("samples in memory must be contiguous; pass numpy.ascontiguousarray(samples)")
    if not array.dtype.isnative:
        raise InvalidRequest(f"elements of type {array.dtype} have their bytes swapped; convert them first")
    pointer = int(array.__array_interface__["data"][0])
    return _native.feed_from_memory(pointer, array.dtype.name, list(array.shape[1:]), array.shape[0], array)


def _is_mapped(array: object) -> bool:
    """Whether the memory behind an array, or behind the array that it is a view of, is a mapped file."""
    import mmap

    while array is not None:
        if isinstance(array, memoryview):
            array = array.obj
            continue
        if isinstance(array, mmap.mmap):
            return True
        array = getattr(array, "base", None)
    return False
