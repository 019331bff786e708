"""Packages that a file of tests needs, which are not imported before one of its tests uses them.

Every process that shares a run of the tests imports every file, and would import frameworks for tests that another
process runs; ``pytest.importorskip`` does.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import pytest

INSTALLED = "`make test` installs it and runs this"


def needs(package: str, reason: str = INSTALLED) -> None:
    """Skip the file that calls this where the package is not installed."""
    if find_spec(package) is None:
        pytest.skip(f"no package {package}: {reason}", allow_module_level=True)


def needed(module: str, reason: str = INSTALLED) -> Any:
    """Skip likewise, and return the module, which is imported when something of it is first used."""
    needs(module.partition(".")[0], reason)
    return _Late(module)


class _Late:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)
