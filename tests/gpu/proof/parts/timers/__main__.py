"""One timer over all cases: ``python -m tests.gpu.proof.parts.timers NAME``. A line of JSON for each reading."""

from __future__ import annotations

import sys
from dataclasses import asdict

from ...json_lines import report, run_program
from . import with_jax, with_torch

TIMERS = with_torch.TIMERS | with_jax.TIMERS


def main() -> None:
    for case, reading in TIMERS[sys.argv[1]]():
        report(case=case, **asdict(reading))


if __name__ == "__main__":
    run_program(main)
