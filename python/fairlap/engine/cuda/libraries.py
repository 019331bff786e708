"""Where NVIDIA's profiling library may be: it comes with a toolkit or a package, not with the driver.

It also turns native errors and failures of a device into those of fairlap.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairlap.engine import _native
from fairlap.errors import NOT_ENOUGH_MEMORY, FairlapError, InvalidRequest, NotAvailable

if TYPE_CHECKING:
    from fairlap.engine.measurement import Measurement


class DeviceFailed(FairlapError, RuntimeError):
    """CUDA failed, or the device did not answer. The samples so far are in ``result``; None before the first."""

    code = "E_DEVICE"

    def __init__(self, message: str, result: Measurement | None = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[DeviceFailed], tuple[str, Measurement | None]]:
        return type(self), (str(self), self.result)


def require_cuda() -> None:
    if absent := _native.cuda_absent_because():
        raise NotAvailable(f"there is no CUDA here: {absent}")


@contextmanager
def native_errors_explained() -> Iterator[None]:
    try:
        yield
    except _native.BadStream as error:
        raise InvalidRequest(str(error)) from None
    except (_native.CudaUnavailable, _native.CaptureFailed) as error:
        raise NotAvailable(str(error)) from None
    except MemoryError:
        raise NotAvailable(NOT_ENOUGH_MEMORY) from None
    except _native.CudaError as error:
        raise DeviceFailed(str(error)) from None


_IN_PACKAGES = ("nvidia/cu*/lib/libcupti.so.*", "nvidia/cuda_cupti/lib/libcupti.so.*")
_IN_TOOLKITS = ("extras/CUPTI/lib64/libcupti.so.*", "lib64/libcupti.so.*", "targets/*/lib/libcupti.so.*")


def cupti_places(driver_cuda_version: int) -> list[str]:
    """Files named libcupti.so.<release>, those of the driver's own release first, older before newer ones."""
    newest_first = sorted(set(_files()), key=lambda path: (_release(path), str(path)), reverse=True)
    fits = [path for path in newest_first if _release(path)[0] <= driver_cuda_version // 1000]
    return [str(path) for path in [*fits, *(path for path in newest_first if path not in fits)]]


def _files() -> Iterator[Path]:
    for folder in (Path(entry) for entry in sys.path if entry):
        for pattern in _IN_PACKAGES:
            yield from folder.glob(pattern)
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for home in (*(Path(home) for home in homes), *Path("/usr/local").glob("cuda*")):
        for pattern in _IN_TOOLKITS:
            yield from home.glob(pattern)


def _release(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.name.partition(".so.")[2])) or (0,)
