"""How often right callables are called wrong, and wrong ones right.

python -m tests.trust.callable_answers --cases 300
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from fairlap.scenarios.callables.answers.check import Answers
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import Draw
from fairlap.scenarios.callables.answers.structural import check_structural

from .right import PROBLEMS, Problem, bfloat16_problem
from .wrong import WRONG, Wrong

_SIZES = (1, 2, 5, 17, 100, 257, 1000, 4096)
_REPEATING_S = 0.2


def drawn_case(number: int) -> tuple[Problem, str, int]:
    rng = np.random.default_rng(number)
    problems = (*PROBLEMS, bfloat16_problem())
    problem = problems[number % len(problems)]
    return problem, str(rng.choice(problem.kinds)), int(rng.choice(_SIZES))


def verdict_on_right(number: int) -> dict[str, str]:
    """Say what is held against the right callables of a drawn case, by name."""
    problem, kind, size = drawn_case(number)
    callables = [Checked(f"{problem.name} {place}", each, None) for place, each in enumerate(problem.right)]

    def draw(rng: np.random.Generator) -> tuple[Any, ...]:
        return problem.draw(rng, kind, size)

    answers = Answers(callables, Draw.of(draw, number), Checked("reference", problem.reference, None))
    answers.check_first()
    answers.check_between()
    answers.check_last()
    return {f"{name}, {kind}, {size}": each.text for name, each in answers.wrong.items()}


def verdict_on_wrong(wrong: Wrong) -> str:
    """Find the code that it is accused of; empty where it passes."""
    draw = Draw.of(wrong.draw, 7)
    reference = Checked("reference", wrong.reference, None)
    answers = Answers([Checked("wrong", wrong.make(), None)], draw, reference, repeating_s=_REPEATING_S)
    answers.check_first()
    answers.check_between()
    answers.check_last()
    if wrong.structural and not answers.wrong:
        check_structural(answers, draw)
    return answers.wrong["wrong"].code if answers.wrong else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.callable_answers")
    parser.add_argument("--cases", type=int, default=300)
    given = parser.parse_args()
    accused = [each for number in range(given.cases) for each in verdict_on_right(number).items()]
    for name, text in accused:
        print(f"accused though right: {name}: {text}")
    passed = [wrong.name for wrong in WRONG if not verdict_on_wrong(wrong)]
    for name in passed:
        print(f"passed though wrong: {name}")
    print(f"{given.cases} right cases, {len(accused)} accused; {len(WRONG)} wrong ones, {len(passed)} passed")
    sys.exit(bool(accused or passed))


if __name__ == "__main__":
    main()
