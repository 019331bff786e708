"""What a search for a contestant's best settings tried and found."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Literal

import msgspec

Settings = tuple[tuple[str, str], ...]


class SettingsTry(msgspec.Struct, frozen=True):
    """One choice of settings, in one race of the search; the default has none."""

    settings: dict[str, str]
    round: int  # 1: single changes; 2: changes together; 3: the last candidates once more
    ratio: float | None = None  # its time over that of the default in the same blocks, over all works
    call_ns: dict[str, float] = {}  # by work, the median time of a call
    why: str = ""  # it has no time


class SearchRegret(msgspec.Struct, frozen=True):
    """How much slower what was found may be than the other settings that were tried, the default among them."""

    at_most: float | None  # a share of the time of the best that is bounded; None where too few blocks ran for a bound
    bounded: int  # other settings in the last round
    unbounded: int  # other settings that ran, and were dropped before it or with too few blocks
    blocks: int  # of the last round
    level: float  # the chance that the bound is wrong; 1 without one


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
    left_out: dict[str, str] = {}  # by setting, or setting=value: why the space lacks it
    regret: SearchRegret | None = None  # None where nothing else ran

    @property
    def not_reached(self) -> list[Settings]:
        """Alternatives of the space that were never tried."""
        tried = [each.settings for each in self.tries]
        return [each for each in alternatives(self.space) if dict(each) not in tried]


def alternatives(space: Mapping[str, tuple[str, ...]]) -> list[Settings]:
    """List the first value of each setting, then the second ones, and so on: the most promising come first."""
    turns = zip_longest(*([_settings(setting, value) for value in values] for setting, values in space.items()))
    return [each for turn in turns for each in turn if each is not None]


def _settings(setting: str, value: str) -> Settings:
    """Split a value that may name further options, as a contestant's name does: ``compile:mode=max-autotune``."""
    first, *further = value.split(":")
    pairs = (each.partition("=") for each in further)
    return ((setting, first), *((name, chosen) for name, _, chosen in pairs))
