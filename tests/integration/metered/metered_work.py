"""A callable whose process tells the meter that it has begun: from then on the machine draws more."""

from __future__ import annotations

import os
from pathlib import Path

Path(os.environ["FAIRLAP_TEST_BUSY"]).touch()


def work() -> int:
    return sum(range(20_000))
