"""A callable that counts its calls, and raises after the last one that it allows."""

from __future__ import annotations

import math
from collections.abc import Callable


def counted(limit: float = math.inf, error: type[BaseException] = ValueError) -> Callable[[], None]:
    def call() -> None:
        call.calls += 1  # type: ignore[attr-defined]
        if call.calls > limit:  # type: ignore[attr-defined]
            raise error("enough")

    call.calls = 0  # type: ignore[attr-defined]
    return call
