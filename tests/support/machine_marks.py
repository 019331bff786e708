"""What tests need of the machine that they run on.

No package is imported before a test uses it: each process that shares a run of the tests imports every file, and
``pytest.importorskip`` would import frameworks for tests that another process runs.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

import pytest

INSTALLED = "`make test` installs it and runs this"
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="processes are found, read and ended through /proc")


def needs_package(name: str) -> pytest.MarkDecorator:
    """Skip a test without it."""
    return pytest.mark.skipif(find_spec(name) is None, reason=f"needs {name}: {INSTALLED}")


def needs(*packages: str, reason: str = INSTALLED) -> None:
    """Skip the file that calls this without one of them."""
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"needs {package}: {reason}", allow_module_level=True)


def needed(module: str) -> Any:
    """Skip the file likewise, and return the module, which is imported when something of it is first used."""
    needs(module.partition(".")[0])
    return _Late(module)


class _Late:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)
