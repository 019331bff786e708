"""A neighbour that keeps the device busy until it is ended: ``python -m tests.gpu.proof.parts.neighbour``."""

from __future__ import annotations

import time

from .telemetry import SteadyLoad

if __name__ == "__main__":
    with SteadyLoad():
        print("busy", flush=True)
        while True:
            time.sleep(1.0)
