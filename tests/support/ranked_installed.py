"""``ranked-numpy`` made known as a package would make it: by an entry point."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_RANKED = Path(__file__).parent / "ranked"


def install_ranked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = folder / "ranked_numpy-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ranked-numpy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fairlap.frameworks]\n"
        "ranked-numpy = ranked_numpy:RankedNumpy\n"
        "ranked-mpirun = ranked_numpy:RankedByMpirun\n"
        "no-ranks = ranked_numpy:NoRanks\n"
    )
    paths = [str(folder), str(_RANKED), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    for path in paths[:2]:
        monkeypatch.syspath_prepend(path)
    monkeypatch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
