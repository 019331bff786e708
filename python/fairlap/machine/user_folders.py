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


def _folder(variable: str, in_home: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / in_home) / _OURS
