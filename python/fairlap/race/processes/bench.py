"""Where a race puts what its processes answer, and what it remembers from one process to the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fairlap.meters.energy import Sensed
from fairlap.race.equal_work.answers import Agreement
from fairlap.race.equal_work.checkpoints import Checkpoints
from fairlap.race.equal_work.fed_check import Feeding
from fairlap.race.equal_work.kept_weights import KeptWeights
from fairlap.race.equal_work.scores import Scores
from fairlap.race.processes.overheads import Overheads
from fairlap.scenarios.process_result import ProcessResult


@dataclass(frozen=True)
class Bench:
    scratch: Path
    agreement: Agreement
    sensed: Sensed
    feeding: Feeding
    scores: Scores
    checkpoints: Checkpoints
    kept_weights: KeptWeights
    may_go_on: Callable[[], bool] = lambda: True  # to another turn, epoch or trial
    overheads: Overheads = field(default_factory=Overheads)
    trained: Callable[[ProcessResult], object] = lambda _: None  # after each epoch
    ends_by_s: float = math.inf  # of every process, on the clock of time.monotonic
    longest_request_s: float = math.inf  # of preparing, answering and measuring
