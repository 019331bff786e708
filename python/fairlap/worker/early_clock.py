"""Calibrate the worker's clock, for tens of milliseconds, while the worker's own modules are being imported.

Import this module before them. Calibrating does not need the interpreter.
"""

from __future__ import annotations

from threading import Thread

from fairlap.engine import _native

_calibrating = Thread(target=_native.clock)
_calibrating.start()


def wait_until_calibrated() -> None:
    """Call this before anything is forked or timed."""
    _calibrating.join()
