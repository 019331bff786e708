"""What the documentation's example uses of Numba: a kernel on the stream that it is launched with."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from fake_device import launch, new_stream


def device_array(size: int, dtype: str) -> Any:
    return SimpleNamespace(size=size)


def stream() -> Any:
    return SimpleNamespace(handle=SimpleNamespace(value=new_stream()))


class jit:  # noqa: N801  (Numba's name)
    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__name__

    def __getitem__(self, launched: tuple[int, int, Any]) -> Callable[..., None]:
        *shape, on = launched
        assert all(size > 0 for size in shape)
        return lambda *_arguments: launch(self._name, on.handle.value)
