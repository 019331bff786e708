"""Failures of a device, and the native errors said in the words of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlap.engine import _native
from fairlap.errors import NOT_ENOUGH_MEMORY, FairlapError, NotAvailable, WrongRequest

if TYPE_CHECKING:
    from fairlap.engine.measurement import Measurement


class DeviceFailed(FairlapError, RuntimeError):
    """CUDA failed, or the device did not answer. The samples so far are in ``result``; None before the first."""

    def __init__(self, message: str, result: Measurement | None = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[DeviceFailed], tuple[str, Measurement | None]]:
        return type(self), (str(self), self.result)


@contextmanager
def native_errors_explained() -> Iterator[None]:
    try:
        yield
    except _native.BadStream as error:
        raise WrongRequest(str(error)) from None
    except (_native.CudaUnavailable, _native.CaptureFailed) as error:
        raise NotAvailable(str(error)) from None
    except MemoryError:
        raise NotAvailable(NOT_ENOUGH_MEMORY) from None
    except _native.CudaError as error:
        raise DeviceFailed(str(error)) from None
