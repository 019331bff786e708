"""One timer over all cases: ``python -m tests.gpu.proof.beside NAME``. A line of JSON for each reading."""

from __future__ import annotations

import sys
from dataclasses import asdict

from ..apart import tell, told_on_this_side
from . import with_jax, with_torch

TIMERS = with_torch.TIMERS | with_jax.TIMERS


def main() -> None:
    for case, reading in TIMERS[sys.argv[1]]():
        tell(case=case, **asdict(reading))


if __name__ == "__main__":
    told_on_this_side(main)
