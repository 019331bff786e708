"""What tests need of the machine that they run on."""

from __future__ import annotations

import sys

import pytest

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="processes are found, read and ended through /proc")
