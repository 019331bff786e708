"""One timer over all cases: ``python -m tests.gpu.proof.beside NAME``. A line of JSON for each reading."""

from __future__ import annotations

import sys
from dataclasses import asdict

from ..apart import tell, tell_absent
from ..record import NotHere, described
from . import with_jax, with_torch

TIMERS = with_torch.TIMERS | with_jax.TIMERS


def main() -> None:
    readings = TIMERS[sys.argv[1]]()
    try:
        for case, reading in readings:
            tell(case=case, **asdict(reading))
    except NotHere as absent:
        tell_absent(str(absent))
    except Exception as error:
        print(described(error), file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
