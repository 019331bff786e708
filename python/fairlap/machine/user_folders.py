"""A user's folders, by the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path

_OURS = "fairlap"


def user_cache() -> Path:
    return _folder("XDG_CACHE_HOME", ".cache")


def user_data() -> Path:
    return _folder("XDG_DATA_HOME", ".local/share")


def user_settings() -> Path:
    return _folder("XDG_CONFIG_HOME", ".config")


def work_cache() -> Path:
    """``FAIRLAP_CACHE``, else the user's cache: weights, inputs, converted models and environments that races share."""
    chosen = os.environ.get("FAIRLAP_CACHE")
    return Path(chosen) if chosen else user_cache()


def own_folders() -> list[Path]:
    """Folders that are fairlap's alone: the user's, and those within ``FAIRLAP_CACHE``, which may hold other things."""
    own = [user_cache(), user_data()]
    if chosen := os.environ.get("FAIRLAP_CACHE"):
        own += [Path(chosen) / name for name in ("work", "sources", "int8", "litert", "envs")]
    return own


def _folder(variable: str, in_home: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / in_home) / _OURS
