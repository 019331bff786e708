"""The worker of one contestant in a block, with the environment and the cores that the block drew."""

from __future__ import annotations

import math

from fairlap.launch.runners import Runner
from fairlap.launch.worker_process import WorkerProcess
from fairlap.race.plan import Block, Limits
from fairlap.race.processes.conditions import environment_of


def block_worker(
    block: Block,
    runner: Runner,
    limits: Limits,
    *,
    greeted: bool = True,
    ends_by_s: float = math.inf,
    longest_request_s: float = math.inf,
) -> WorkerProcess:
    """Start it under the limits of start and memory; the rest as in :class:`WorkerProcess`."""
    return WorkerProcess(
        runner.command,
        environment=environment_of(block, runner.environment, runner.passed),
        start_s=limits.start_s,
        cores=runner.cores(block.cores),
        memory_limit_bytes=limits.memory_bytes,
        greeted=greeted,
        ends_by_s=ends_by_s,
        longest_request_s=longest_request_s,
    )
