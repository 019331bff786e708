"""The floor of every method on this machine: what it cannot see below."""

from __future__ import annotations

from typing import Any

from fairlap.engine.clocks import cpu_floor


def floor(clock: str = "auto") -> dict[str, Any]:
    """The measured floors: ``cpu``, and ``cuda`` as a list of devices, or None with ``cuda_absent`` saying why."""
    from fairlap.engine.cuda_floor import cuda_floors

    devices, absent = cuda_floors()
    floors: dict[str, Any] = {"cpu": cpu_floor(clock), "cuda": devices}
    if devices is None:
        floors["cuda_absent"] = absent
    return floors
