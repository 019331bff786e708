"""A user's folders, by the XDG base directory specification."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from fairlap.errors import NotAvailable

_OURS = "fairlap"
_SHARED = ("work", "sources", "int8", "fp8", "litert", "envs", "roofs", "report", "bisect", "repositories", "servers")


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


def kept_copies(file: Path) -> list[Path]:
    """Where a file of ``work_cache()`` may have been kept: there, and in the user's cache, which is read all the same.

    What holds for the whole machine, such as its roofs, is so measured once, however many caches there are.
    """
    places = [file]
    with suppress(NotAvailable, ValueError):
        places.append(user_cache() / file.relative_to(work_cache()))
    return list(dict.fromkeys(places))


def own_folders() -> list[Path]:
    """Folders that are fairlap's alone: the user's, and those within ``FAIRLAP_CACHE``, which may hold other things."""
    own = []
    with suppress(NotAvailable):  # FAIRLAP_CACHE and FAIRLAP_STORE need no home
        own += [user_cache(), user_data()]
    if chosen := os.environ.get("FAIRLAP_CACHE"):
        own += [Path(chosen) / name for name in _SHARED]
    return own


def _folder(variable: str, in_home: str) -> Path:
    if chosen := os.environ.get(variable):
        return Path(chosen) / _OURS
    try:
        home = Path.home()
    except RuntimeError:
        raise _no_home("this user has no home folder; set", variable) from None
    with suppress(OSError):
        if not home.is_dir():  # as root a misspelt one would be made
            raise _no_home(f"there is no home folder {home}; correct", variable)
    return home / in_home / _OURS


def _no_home(what: str, variable: str) -> NotAvailable:
    return NotAvailable(f"{what} HOME, or set FAIRLAP_CACHE and FAIRLAP_STORE (or {variable})", code="E_HOME")
