"""How much slower the settings that a search chose may be than the best of those in its last round.

In each block of that round all take turns in fresh processes, in drawn order. So whichever is the best, the ratio of
another one to it is as likely above as below the true one, and is below it in all of n blocks with a chance of 2^-n.
The largest ratio of any block is therefore exceeded at most that often, whatever the noise, and those of k settings to
the best of them at most k times as often. Only the chosen one matters: a bound that is wrong has to be that of its
ratio to the best. So choosing by the same blocks costs nothing.

A bet or a rank test says no more after so few blocks. Settings that were dropped after one block are not bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from fairlap.race.around_blocks.settings_search import SearchRegret, Settings
from fairlap.race.counted_blocks import block_times_ns
from fairlap.scenarios.process_result import ProcessResult

_LEVEL = 0.05  # with more blocks the bound would say more than most ask for
_MOST_LEVEL = 0.25  # more, such as after one block, is not worth saying
_SHARE_OF_THE_SEARCH = 0.1  # that blocks for this bound may take

LogTimes = Mapping[Settings, Sequence[float]]
"""Of each setting in each block, over all works."""


def further_blocks(seconds: float, block_s: float, blocks: int, candidates: int) -> int:
    """Count the blocks that a tenth more time allows, and that the bound can use.

    ``seconds`` is what the search has taken, ``blocks`` those that its last round has anyway.
    """
    if not candidates or block_s <= 0:
        return 0
    affordable = int(_SHARE_OF_THE_SEARCH * (seconds + blocks * block_s) / block_s)
    return max(0, min(affordable, math.ceil(math.log2(candidates / _LEVEL)) - blocks))


def regret_of(chosen: Settings, log_times: LogTimes, tried: int) -> SearchRegret | None:
    """Bound the chosen one's time over that of the best in the last round; None where no other settings ran.

    ``tried`` counts the settings, the default included, that ran anywhere in the search.
    """
    others = max(0, tried - 1)
    rivals = [np.asarray(own) for settings, own in log_times.items() if settings != chosen]
    own = np.asarray(log_times.get(chosen, ()))
    level = len(rivals) * 0.5**own.size
    if not rivals or not own.size or level > _MOST_LEVEL:
        return SearchRegret(None, 0, others, own.size, 1.0) if others else None
    worst = max(float((own - rival).max()) for rival in rivals)
    return SearchRegret(max(0.0, math.expm1(worst)), len(rivals), others - len(rivals), own.size, level)


def log_times_of(processes: Mapping[Settings, Sequence[ProcessResult]], works: int) -> dict[Settings, list[float]]:
    """Average over works, of settings that finished every block; blocks of all works take turns."""
    names = {str(place): settings for place, settings in enumerate(processes)}
    times_ns = block_times_ns({name: processes[settings] for name, settings in names.items()})
    by_work = sorted(range(len(next(iter(times_ns.values())))), key=lambda place: _first(processes)[place].work_id)
    return {
        settings: np.log([times_ns[name][place] for place in by_work]).reshape(works, -1).mean(axis=0).tolist()
        for name, settings in names.items()
    }


def _first(processes: Mapping[Settings, Sequence[ProcessResult]]) -> Sequence[ProcessResult]:
    return next(iter(processes.values()))
