from __future__ import annotations

from fake_device import new_stream


class Stream:
    device_id = 0

    def __init__(self) -> None:
        self.ptr = new_stream()


_current = Stream()


def get_current_stream() -> Stream:
    return _current
