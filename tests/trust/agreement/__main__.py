"""Whether what fairlap reports agrees with the loop that an expert would write by hand, in every scenario.

python -m tests.trust.agreement                              all cases, ten pairs of each: hours on two cores
python -m tests.trust.agreement --only latency,train --pairs 6 --threads 2
python -m tests.trust.agreement --only simulating --on numpy,jax     "simulating with numpy" and "simulating with jax"
python -m tests.trust.agreement --on torch,jax --device cuda:0 --threads 1 --out build/trust/cuda
python -m tests.trust.agreement --pairs 0                    only the table of all pairs in --out so far

The loops are in by_hand/ and import nothing of fairlap. A contestant may be slowed to see that the difference is found:
--on onnxruntime:slowdown=3%. Pairs are added to those of earlier commands, so that a table
may be taken in short commands; another --out starts over. Exit status 1 if a ratio is beyond what is allowed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

from .case import BY_HAND, Case
from .cases import CASES, STARTS_FILE
from .pairs import Pair, agreements_of, pairs_of
from .table import as_table


def write_models(folder: Path) -> None:
    """Write the files of ONNX Runtime: the graphs that fairlap races. And the initial values that it solves from."""
    import numpy as np
    from fairlap.models.draw import draw_inputs, draw_weights
    from fairlap.models.registry import find, implementation_at
    from fairlap.race.equal_work.material_sources import seeds_of_inputs

    folder.mkdir(parents=True, exist_ok=True)
    for name, batch, file in (
        ("convnet", 8, "convnet-8.onnx"),
        ("convnet", 1, "convnet-1.onnx"),
        ("characters_generate", 1, "characters.onnx"),
        ("tcn", 8, "tcn-8.onnx"),
        ("lstm_forecaster", 8, "lstm-8.onnx"),
    ):
        model = find(name)
        graph = implementation_at(model.package, "onnx").build(draw_weights(model.spec, 0), batch)
        (folder / file).write_bytes(graph.SerializeToString())
    lorenz = find("lorenz").spec
    moved = [draw_inputs(lorenz, 1, seed)["change"] for seed in list(seeds_of_inputs(0).values())[:2]]
    np.save(folder / STARTS_FILE, 1 + np.concatenate(moved))  # it starts from 1, 1, 1


def write_files(folder: Path, names: Sequence[str]) -> None:
    """Write what a user brings, in a process of its own: some of it takes frameworks, whose threads spin."""
    for name in names:
        subprocess.run([sys.executable, str(BY_HAND / "users_files.py"), str(folder), name], check=True)


def may_run(case: Case) -> bool:
    if not case.needs or find_spec(case.needs):
        return True
    print(f"{case.name}: left out, since {case.needs} is not installed", file=sys.stderr)
    return False


def chosen(cases: Sequence[Case], only: str) -> list[Case]:
    """Choose cases by their names, or by these up to " with ": ``simulating`` chooses it with every library."""
    wanted = {each for each in only.split(",") if each}
    names = {case.name: {case.name, case.name.partition(" with ")[0]} for case in cases}
    unknown = wanted.difference(*names.values())
    if unknown:
        sys.exit(f"no case named {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return [case for case in cases if not wanted or names[case.name] & wanted]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.agreement")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument(
        "--only",
        default="",
        help='cases, or their names up to " with ", separated by commas',
    )
    parser.add_argument("--on", default="", help="contestants, separated by commas")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("build/trust"))
    given = parser.parse_args()
    write_models(given.out / "models")
    file = given.out / "pairs.jsonl"
    selected = [case for case in chosen(CASES, given.only) if may_run(case)] if given.pairs else []
    write_files(given.out / "models", sorted({case.writes for case in selected if case.writes}))
    for _, group in groupby(selected, key=lambda case: case.command):
        cases = list(group)
        wanted = given.on.split(",") if given.on else dict.fromkeys(name for case in cases for name in case.contestants)
        on = [name for name in wanted if any(case.is_timed_in(name) for case in cases)]
        for threads in cases[0].threads:
            if str(threads) not in given.threads.split(",") or not on:
                continue
            for _ in range(given.pairs):
                for pair in pairs_of(cases, threads, given.out / "models", on, given.device):
                    print(
                        f"{pair.case}, {pair.contestant}, {pair.threads}: {pair.fairlap / pair.by_hand:.3f}", flush=True
                    )
                    with file.open("a") as kept:
                        kept.write(json.dumps(asdict(pair)) + "\n")
    lines = file.read_text().splitlines() if file.exists() else []
    found = agreements_of([Pair(**json.loads(line)) for line in lines], CASES)
    print(as_table(found))
    sys.exit(any(each.agrees is False for each in found))


if __name__ == "__main__":
    main()
