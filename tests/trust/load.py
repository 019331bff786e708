"""Identical contestants under load: how often two of them are called different by their largest rates.

python -m tests.trust.load               10 races of five identical contestants, 100 pairs
python -m tests.trust.load --races 40    400 pairs
python -m tests.trust.load --on torch    with a real framework, whose calls are short

Each pair is judged alone, at 5 %, as in a race of two. The pairs of a race share blocks, so their mistakes come in
clusters, and as often on average as those of separate races. Exit status 1 if more are called different than 5 %
allow. Without --on, calls sleep for 2 ms.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
from fairlap import verdict
from fairlap.race.counted_blocks import work_blocks
from fairlap.race.plan import Measuring, draw_plan
from fairlap.race.race import Race
from fairlap.request.load import Load
from fairlap.request.names import contestant_named
from fairlap.request.work import Work

from .identical_pairs import IdenticalPairs

SUPPORT = Path(__file__).parents[1] / "support"
CONTESTANTS = 5
BLOCKS = 6


def install_served(folder: Path) -> None:
    """The framework whose calls take a known time, as a package would be installed: by an entry point."""
    info = folder / "fairlap_served-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fairlap-served\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlap.frameworks]\nserved = served_framework:Served\n")
    paths = [str(folder), str(SUPPORT)]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH", "")]))


def raced(contestant: str, load: Load, seed: int) -> verdict.BlockTable | None:
    """None where some process found no rate, as on a machine that was too busy."""
    name = contestant_named(contestant)
    cores = tuple(sorted(os.sched_getaffinity(0)))
    plan = draw_plan(
        tuple(msgspec.structs.replace(name, text=f"{contestant} ({number})") for number in range(CONTESTANTS)),
        (Work("mlp", 1, load=load),),
        blocks=BLOCKS,
        conditions="controlled",
        threads=1,
        available_cores=cores,
        seed=seed,
        measuring=Measuring(seconds=0.05),
    )
    race = Race(plan)
    race.run()
    [blocks] = work_blocks(plan, race.processes, "controlled")
    if blocks.table is not None and len(blocks.table.contestants) == CONTESTANTS:
        return blocks.table
    print(f"race {seed} does not count: {blocks.why_no_verdict or list(blocks.unqualified.values())}", file=sys.stderr)
    return None


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--races", type=int, default=10)
    options.add_argument("--on", default="served")
    options.add_argument("--percentile", type=float, default=0.9)
    options.add_argument("--bound-ms", type=float, default=20.0)
    options.add_argument("--trial-s", type=float, default=0.5)
    given = options.parse_args()
    load = Load(given.percentile, given.bound_ms / 1e3, trial_s=given.trial_s)
    found = IdenticalPairs()
    spreads = []
    with tempfile.TemporaryDirectory() as folder:
        install_served(Path(folder))
        for seed in range(given.races):
            table = raced(given.on, load, seed)
            if table is None:
                continue
            found.count(seed, table)
            spreads.append(float(np.std(table.log_figures - table.log_figures.mean(axis=1, keepdims=True))))
    if spreads:
        print(f"spread of the largest rate within a block: {np.mean(spreads):.1%}")
    return found.conclude()


if __name__ == "__main__":
    sys.exit(main())
