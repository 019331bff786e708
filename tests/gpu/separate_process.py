"""A script in a process of its own, for what could end a process or leave it changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_TOP = Path(__file__).parents[2]


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    paths = [str(_TOP), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
