"""What tests need of the machine that they run on."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="processes are found, read and ended through /proc")


def needs_package(name: str) -> pytest.MarkDecorator:
    """Skip without it, but do not import it, which takes seconds, where tests are only collected."""
    return pytest.mark.skipif(find_spec(name) is None, reason=f"needs {name}, which `make test` installs")
