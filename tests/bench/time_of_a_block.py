"""Where the seconds of a block go: six contestants on a small BERT of transformers, block by block and phase by phase.

    python tests/bench/time_of_a_block.py
    python tests/bench/time_of_a_block.py --size small --blocks 4 --on torch,jax --as-fixed

The blocks are those of a race until decided, whose processes start side by side after the first; with ``--as-fixed``
those of ``--blocks``, which start alone. The model is a folder of transformers with drawn weights, opened in an empty
cache. Phases are as the workers report them; what is left of a process are its turns and checks, less the phases in
which it was not waited for. On a busy machine all of this takes longer, so the load is printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.scenarios.process_result import ProcessResult

CONTESTANTS = "torch,torch:compile,jax,tensorflow,onnxruntime,openvino"
SIZES = {  # hidden size, layers, heads, size between, vocabulary
    "tiny": (128, 2, 2, 512, 1000),
    "mini": (256, 4, 4, 1024, 30522),
    "small": (512, 4, 8, 2048, 30522),
}
SAME = ("interpreter", "numpy", "fairlap", "import", "build", "convert", "lower", "trace", "compile", "first_call")
AFTER = ("checked_calls", "warm_up", "measured")


def write_bert(folder: Path, size: str) -> None:
    import torch
    import transformers

    hidden, layers, heads, between, vocabulary = SIZES[size]
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=between,
    )
    transformers.BertModel(config).save_pretrained(folder)


def written_in_a_process(folder: Path, size: str) -> None:
    """So that nothing of PyTorch is in the process of the race, as in every race."""
    subprocess.run([sys.executable, __file__, "--size", size, "--write", str(folder)], check=True)


def blocks_of(race: Race, count: int) -> Iterator[tuple[float, list[ProcessResult]]]:
    """Run so many blocks; of each its wall time and its processes."""
    blocks = race.in_blocks()
    try:
        for _ in range(count):
            before, began_s = len(race.processes), time.monotonic()
            next(blocks, None)
            yield time.monotonic() - began_s, race.processes[before:]
    finally:
        blocks.close()


def lines_of(processes: Sequence[ProcessResult]) -> Iterator[str]:
    known = {phase for process in processes for phase in process.phases_s}
    phases = [each for each in SAME if each in known] + sorted(known.difference(SAME, AFTER))
    phases += [each for each in AFTER if each in known]
    heads = ["contestant", "started", "caches", "whole", *phases, "rest"]
    rows = [heads, *(_cells(process, phases) for process in sorted(processes, key=lambda each: each.contestant))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )


def _cells(process: ProcessResult, phases: Sequence[str]) -> list[str]:
    if not process.finished:
        return [process.contestant, process.started, process.caches, process.code, *("" for _ in phases), ""]
    seconds = [process.phases_s.get(phase) for phase in phases]
    rest_s = process.elapsed_s - sum(each for each in seconds if each is not None)
    return [
        process.contestant,
        process.started,
        process.caches,
        f"{process.elapsed_s:.2f}",
        *("" if each is None else f"{each:.2f}" for each in seconds),
        f"{rest_s:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Show where the seconds of a block go.")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--on", default=CONTESTANTS, help="contestants, separated by commas")
    parser.add_argument("--dims", default="batch=8,sequence=32", help="sizes of a call")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--as-fixed", action="store_true", help="start processes alone, as with a number of blocks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write:
        write_bert(asked.write, asked.size)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / f"bert-{asked.size}"
        written_in_a_process(folder, asked.size)
        os.environ["FAIRLAP_CACHE"] = f"{scratch}/cache"
        request = RaceRequest(
            models=(f"hf:{folder}",),
            contestants=Contestants(asked.on),
            dims=asked.dims,
            blocks=asked.blocks if asked.as_fixed else None,
            seed=asked.seed,
        )
        began_s = time.monotonic()
        plan = plan_of(request)
        print(f"opened, exported and proven in {time.monotonic() - began_s:.1f} s")
        for number, (wall_s, processes) in enumerate(blocks_of(Race(plan), asked.blocks), start=1):
            rounds_s = sum(process.in_rounds_s for process in processes)
            print(
                f"\nblock {number}: {wall_s:.1f} s, of which {rounds_s:.1f} s in rounds, load {os.getloadavg()[0]:.1f}"
            )
            print("\n".join(lines_of(processes)), flush=True)


if __name__ == "__main__":
    main()
