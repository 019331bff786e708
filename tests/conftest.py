"""What every test may rely on."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Started in the background, a process ignores Ctrl-C, and so would every program that a test starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
