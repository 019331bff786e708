"""The L2 cache of a device, made cold before each call that the host times."""

from __future__ import annotations

from fairlap.engine import _native
from fairlap.engine.cuda.libraries import native_errors_explained, require_cuda
from fairlap.engine.cuda.stream_measurement import flushed_text


class ColdCache:
    """Holds memory of twice the cache's size. The framework must have used the device before.

    ``make_cold`` is native, so that no Python runs between two samples. It is for an idle device, and returns when the
    device is idle again.
    """

    def __init__(self, device: int) -> None:
        require_cuda()
        with native_errors_explained():
            self.make_cold = _native.ColdCache(device)

    @property
    def text(self) -> str:
        cache = self.make_cold
        return flushed_text(cache.flush_bytes, cache.cache_bytes, resets_persisting=cache.resets_persisting)
