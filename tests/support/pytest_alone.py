"""Starting pytest from a test as a user does: not as one of the processes that share this run of the tests."""

from __future__ import annotations

import os


def environment_alone() -> dict[str, str]:
    """Leave out what pytest-xdist gave to this process; with it, pytest-benchmark saves nothing."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
