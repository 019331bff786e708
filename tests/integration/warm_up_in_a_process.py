"""Steps of one framework around a warm-up that is undone, in this process.

It prints as JSON whose bits differ from those of steps without the warm-up. Run by test_warm_up_leaves_nothing.py.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import msgspec
import numpy as np
from fairlap.frameworks.contract import Contestant, Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.arrays import Arrays
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.registry import find
from fairlap.models.spec import LABELS
from fairlap.models.workload import Workload
from fairlap.request.fields.training import Training
from fairlap.request.names import contestant_named
from fairlap.scenarios.learning.training import Epochs

BATCH, STEPS = 4, 3


def main(contestant: str, model: str, training: str) -> dict[str, Any]:
    name, found = contestant_named(contestant), find(model)
    framework, settings = framework_named(name.framework), Settings(1, name.variant)
    os.environ.update(framework.environment_for(settings))
    inputs = [draw_inputs(found.spec, BATCH, seed) for seed in range(STEPS)]
    labels = [draw_labels(found.spec, BATCH, seed) for seed in range(STEPS)]
    work = Workload(
        found.spec,
        found.package,
        BATCH,
        "train",
        "fp32",
        draw_weights(found.spec, 0),
        inputs[0],
        labels[0],
        msgspec.json.decode(training, type=Training),
    )
    made = framework().prepare(work, settings, lambda _: nullcontext())
    batches = zip(inputs, labels, strict=True)
    steps = [made.bind({**of_batch, LABELS: np.asarray(answers)}) for of_batch, answers in batches]
    state, epochs = made.training, Epochs(made, BATCH, "cpu")
    assert state is not None

    def ends(warm_up: Callable[[bool], None]) -> list[Arrays]:
        """As the first and the second epoch find and leave the state."""
        state.reset()
        read: list[Arrays] = []
        for is_first in (True, False):
            warm_up(is_first)
            read.append(dict(state.read()))
            take(made, steps)
            read.append(dict(state.read()))
        return read

    warmed = ends(lambda is_first: epochs._warm_up(steps, is_first=is_first))
    plain = ends(lambda _: None)
    return {
        "differ": [f"{place}: {key}" for place in range(len(plain)) for key in other(warmed[place], plain[place])],
        "moved": other(plain[1], plain[3]),
        "arrays": sorted(plain[-1]),
    }


def take(made: Contestant, steps: Sequence[Callable[[], Any]]) -> None:
    for step in steps:
        result = step()
        if made.done is not None:
            made.done(result)


def other(one: Arrays, another: Arrays) -> list[str]:
    assert one.keys() == another.keys()
    return [key for key in one if np.asarray(one[key]).tobytes() != np.asarray(another[key]).tobytes()]


if __name__ == "__main__":
    answer_file = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no answer
    json.dump(main(*sys.argv[1:]), answer_file)
    answer_file.flush()
    os._exit(0)
