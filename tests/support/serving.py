"""``fairlap serve`` as a process, on a free port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(store: Path, *arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "fairlap", "serve", "--port", "0", *arguments]
    environment = {**os.environ, "FAIRLAP_STORE": str(store), **variables}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            yield process, next(found[0] for line in lines if (found := re.search(r"http://\S+(?=;)", line)))
        finally:
            process.kill()
