"""Something for the device to do for as long as wanted, always the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from .record import NotHere

_SIZE = 8192
_IN_FLIGHT_S = 0.02


class SteadyLoad:
    """Large products of matrices back to back, on a thread that stays a little ahead of the device."""

    def __init__(self) -> None:
        try:
            import torch
        except ImportError:
            raise NotHere("PyTorch, whose products of matrices are the steady load, is not installed") from None
        if not torch.cuda.is_available():
            raise NotHere("this PyTorch has no CUDA, and its products of matrices are the steady load")
        self._torch: Any = torch
        a = torch.randn(_SIZE, _SIZE, device="cuda", dtype=torch.bfloat16)
        out = torch.empty_like(a)
        self._call: Callable[[], Any] = lambda: torch.mm(a, a, out=out)
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        for _ in range(3):
            self._call()
        torch.cuda.synchronize()

    def once(self) -> None:
        self._call()
        self._torch.cuda.synchronize()

    def __enter__(self) -> SteadyLoad:
        self._ending.clear()
        self._thread = threading.Thread(target=self._keep_busy)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._torch.cuda.synchronize()

    def _keep_busy(self) -> None:
        begun = time.perf_counter()
        self.once()
        each_s = max(1e-4, time.perf_counter() - begun)
        ahead = max(2, round(_IN_FLIGHT_S / each_s))
        last: list[Any] = []
        while not self._ending.is_set():
            self._call()
            event = self._torch.cuda.Event()
            event.record()
            last.append(event)
            if len(last) > ahead:
                last.pop(0).synchronize()
