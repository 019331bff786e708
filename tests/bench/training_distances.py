"""How far contestants, and mistakes in training, end from float64 after twenty steps of each model that learns.

    python tests/bench/training_distances.py
    python tests/bench/training_distances.py --models digits,mnist --print

Distances are multiples of what is allowed, of the array that is farthest. The tables in docs/how-to/race-training.md
come from here.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fairlap.models.arrays import Arrays
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.exercise import distances
from fairlap.models.training.mistakes import mistakes
from framework_python import python_with
from generated_page import DOCS, write_part
from steps_of_training import MODELS, exercise_of, state_of

CONTESTANTS = ("torch", "tensorflow:graph", "jax", "paddle")
PAGE = DOCS / "how-to" / "race-training.md"


def main(options: argparse.Namespace) -> None:
    models = options.models.split(",")
    right: list[str] = []
    wrong: dict[str, dict[str, str]] = {}
    for model in models:
        check = TrainingCheck(exercise_of(model))
        right.append(_row([f"`{model}`", *_distances_of_contestants(check)]))
        print(right[-1], flush=True)
        for what, other in mistakes(check.exercise):
            got = other.taken(np.float32)
            apart, why = check.judged(got)
            named = "" if why == what else " (within)" if max(apart.values()) <= 1 else f" ({why or 'not named'})"
            wrong.setdefault(what, {})[model] = f"{max(distances(check.found, got).values()):,.2g}{named}"
            print(f"  {what}: {wrong[what][model]}", flush=True)
    head = [f"`{model}`" for model in models]
    rows = [_row([what.removeprefix("it "), *(of.get(model, "") for model in models)]) for what, of in wrong.items()]
    text = "\n".join(
        [
            *_head(["model", "NumPy", *CONTESTANTS]),
            *right,
            "",
            *_head(["mistake", *head]),
            *rows,
        ]
    )
    if options.print:
        print(text)
    else:
        write_part(PAGE, "distances", text)


def _distances_of_contestants(check: TrainingCheck) -> list[str]:
    """In float32, as far as they are allowed before kinks are looked at."""
    found = [_text(check, check.exercise.taken(np.float32))]
    for contestant in CONTESTANTS:
        with python_with(contestant) as python, tempfile.TemporaryDirectory() as folder:
            found.append(_text(check, state_of(contestant, check.exercise, Path(folder), python)))
    return found


def _text(check: TrainingCheck, got: Arrays) -> str:
    plain = max(distances(check.found, got).values())
    apart, why = check.judged(got)
    judged = max(apart.values())
    return f"{plain:.2g}" if plain <= 1 else f"{plain:.2g}, at kinks {judged:.2g}{why}"


def _head(cells: Sequence[str]) -> list[str]:
    return [_row(cells), _row(["---"] * len(cells))]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--print", action="store_true", help="print the tables and leave the page as it is")
    main(parser.parse_args())
