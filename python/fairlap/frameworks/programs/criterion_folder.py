"""The folder that criterion writes, ``target/criterion`` or ``CRITERION_HOME``: below it ``BENCHMARK/new`` for each.

There ``benchmark.json`` has the name and ``estimates.json`` the figures, as criterion writes them since version 0.3
(``analysis/mod.rs`` and ``report.rs`` of its sources). ``base`` and saved baselines are of earlier runs, and ``change``
has shares.
"""

from __future__ import annotations

import json
from pathlib import Path

_NEW, _NAME, _ESTIMATES = "new", "benchmark.json", "estimates.json"


def criterion_texts(folder: Path) -> bytes:
    """Read what the newest run wrote, as text in which the name of each benchmark precedes its estimates."""
    found = []
    for estimates in sorted(folder.rglob(f"{_NEW}/{_ESTIMATES}")):
        named = estimates.with_name(_NAME)
        by_place = {"full_id": str(estimates.parent.parent.relative_to(folder))}
        name = named.read_bytes() if named.is_file() else json.dumps(by_place).encode()
        found += [name, estimates.read_bytes()]
    return b"\n".join(found)
