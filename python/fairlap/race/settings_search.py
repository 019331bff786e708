"""What a search for a contestant's best settings tried and found."""

from __future__ import annotations

from typing import Literal

import msgspec


class SettingsTry(msgspec.Struct, frozen=True):
    """One choice of settings, in one race of the search; the default has none."""

    settings: dict[str, str]
    round: int  # 1: single changes; 2: changes together; 3: the last candidates once more
    ratio: float | None = None  # its time over that of the default in the same blocks, over all works
    call_ns: dict[str, float] = {}  # by work, the median time of a call
    why: str = ""  # it has no time


class SettingsSearch(msgspec.Struct, frozen=True):
    """The space, everything that was tried, and what was found; docs/how-to/race-at-best-settings.md explains it."""

    contestant: str
    space: dict[str, tuple[str, ...]]  # by setting, the values besides the default
    found: dict[str, str]  # the settings that differ from the default; none where the default is the best
    ratio: float | None  # of what was found, in the last round
    tries: tuple[SettingsTry, ...]
    ended_by: Literal["complete", "budget", "default"]  # the default did not run, so there was nothing to compare with
    seconds: float
    data_seed: int
