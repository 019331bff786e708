"""What fairlap adds to a step that two ranks share: its step compared with a script that users of torchrun write.

Both run in the same two processes, which torchrun starts, on the same parts of the batch, each with its own model in
DistributedDataParallel. They take turns step by step, timed by the engine; in every other round the other one begins.
Ranks wait for each other in every step, so the time of rank 0 is that of both. The ratio of a round is that of the
lower quartiles, since a neighbour takes the core during other steps, and the figure is the median over the rounds with
the interval of the sign test. Goal: at most 2 %.

    PYTHONPATH=tests/support python tests/bench/ranks.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from added_share import added_share
from fairlap.frameworks.adapter_parts.answers import batch_of
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.rank_parts import part_of, parts_of
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.request.fields.scale import Rank
from fairlap.request.fields.training import Sgd, Training

RANKS = 2
MODELS = {"digits": 32, "characters": 8}  # with the batch of both ranks together
RATE, MOMENTUM = 1e-4, 0.9  # slow, so that there is something to learn for all of the steps
ROUNDS = 16
STEPS_EACH = 80  # in a round


def by_hand(work: Workload) -> Callable[[], Any]:
    import torch
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(work.implementation("torch").build(work.weights).train())
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    inputs = torch.from_numpy(np.array(next(iter(work.inputs.values()))))
    labels = torch.from_numpy(np.array(work.labels)).long()

    def step() -> Any:
        optimizer.zero_grad()
        logits = model(inputs)[0]
        loss = cross_entropy(logits.reshape(labels.numel(), -1), labels.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    return step


def measured(model: str) -> dict[str, float]:
    number, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    offered, batch = find(model), MODELS[model]
    spec = offered.spec
    labels = draw_labels(spec, batch, 0)
    assert labels is not None
    work = Workload(
        *(spec, offered.package, batch // count, "train", "fp32", draw_weights(spec, 0)),
        parts_of(draw_inputs(spec, batch, 0), number, count),
        part_of(labels, number, count),
        Training(Sgd(RATE, MOMENTUM)),
    )
    rank = Rank(number, count, f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
    settings = Settings(1, rank=rank)
    contestant = framework_named("torch")().prepare(work, settings, lambda _: nullcontext())
    ours, theirs = contestant.bind(batch_of(work)), by_hand(work)
    return added_share(ours, theirs, None, rounds=ROUNDS, steps=STEPS_EACH)


def main() -> None:
    print(f"{'model':<14}{'batch':>6}{'by hand':>12}{'fairlap adds':>14}  interval")
    for model, batch in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "found.json"
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            subprocess.run([*command, __file__, model, str(file)], check=True, env=environment)
            found = json.loads(file.read_text())
        share = f"{found['share']:>+14.2%}  [{found['low']:+.2%}, {found['high']:+.2%}]"
        print(f"{model:<14}{batch:>6}{found['by hand'] / 1e3:>9.0f} us{share}", flush=True)


def as_rank(model: str, file: Path) -> None:
    found = measured(model)
    if os.environ["RANK"] == "0":
        file.write_text(json.dumps(found))
    import torch.distributed as dist

    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # PyTorch may abort when it leaves a group that another rank still uses


if __name__ == "__main__":
    if len(sys.argv) == 3:
        as_rank(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
