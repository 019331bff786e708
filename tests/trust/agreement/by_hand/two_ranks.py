"""What the loops of two ranks share: the second process, and a core for each."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from timing import LONG_TURN_S, time_calls


class TwoRanks:
    """The first process starts the second, with the same arguments."""

    def __init__(self) -> None:
        self.second = None
        if "RANK" not in os.environ:
            shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["AGREEMENT_PORT"]}
            os.environ.update(shared, RANK="0", WORLD_SIZE="2")
            second = {**shared, "RANK": "1", "WORLD_SIZE": "2"}
            self.second = subprocess.Popen([sys.executable, *sys.argv], env=second, stdin=subprocess.DEVNULL)
        self.number = int(os.environ["RANK"])
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[self.number]})

    def time_steps(self, step: Callable[[], Any]) -> None:
        """Time them in the first process; the second shares each of its steps, until both end."""
        while self.second is None:
            step()
        time_calls(step, LONG_TURN_S)
        self.second.kill()
        os._exit(0)  # without what frameworks do together at their end
