"""The worker's clock calibrates itself, for tens of milliseconds, while the worker's own modules are imported.

To be imported before them. Calibrating needs no interpreter; on one core it takes as long as it would later.
"""

from __future__ import annotations

from threading import Thread

from fairlap.engine import _native

_calibrating = Thread(target=_native.clock)
_calibrating.start()


def wait_until_calibrated() -> None:
    """Before anything is forked or timed."""
    _calibrating.join()
