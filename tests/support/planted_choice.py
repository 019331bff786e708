"""A choice between four models whose times and answers are planted."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
from fairlap.meters.memory import Memory
from fairlap.models.metrics.metric import Parts
from fairlap.models.task_metrics import score_of
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.choice.choice import Choice
from fairlap.results.choice.choice_of_results import ChoiceQuestion, choice_of
from fairlap.results.decision.requirements import requirements_of
from fairlap.results.prices import price_given
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult
from runs_for_rows import MACHINE, a_process

ITEMS, BATCH = 1500, 4
NAMES = ("small", "large", "copy", "heavy")
TIMES_NS = {"small": 1e6, "large": 2e6, "copy": 2e6, "heavy": 5e6}


def answers() -> dict[str, np.ndarray]:
    """Draw what is right: the large one and its copy alike, the heavy one but for three items, the small one less."""
    drawn = np.random.default_rng(0)
    large = drawn.random(ITEMS) < 0.95
    heavy = large.copy()
    heavy[:3] = ~heavy[:3]
    return {"small": large & (drawn.random(ITEMS) < 0.85), "large": large, "copy": large, "heavy": heavy}


def a_plan(contestants: str, blocks: int) -> Plan:
    works = tuple(Work(name, BATCH, "infer") for name in NAMES)
    return draw_plan(
        Contestants(contestants), works, blocks=blocks, conditions="controlled", threads=1, available_cores=(0, 1),
        seed=3,
    )  # fmt: skip


def chosen(
    require: str = "", minimise: str | None = None, *, contestants: str = "torch", blocks: int = 12,
    times_ns: Mapping[str, float] = TIMES_NS, price: str = "", noise: float = 0.02, margin: float = 0.02, seed: int = 1,
    max_drop: float | None = None, file_bytes: Mapping[str, int] | None = None,
) -> Choice:  # fmt: skip
    plan = a_plan(contestants, blocks)
    processes, items = raced(plan, times_ns, noise, seed)
    run = Run(plan, processes, dict(MACHINE), {"whole": 1.0})
    question = ChoiceQuestion(
        "top1",
        requirements_of(require) if require else (),
        minimise,  # type: ignore[arg-type]
        margin,
        max_drop,
    )
    results = results_of(run, price=price_given(price) if price else None)
    by_work = {work.id: (file_bytes or {}).get(work.model, 0) for work in plan.works}
    return choice_of(results, items, question, by_work)


def raced(
    plan: Plan, times_ns: Mapping[str, float] = TIMES_NS, noise: float = 0.02, seed: int = 1
) -> tuple[list[ProcessResult], dict[tuple[str, str], dict[str, Parts]]]:
    """Plant the processes of a plan, and what the metric made of each item."""
    parts: dict[str, Parts] = {name: (own.astype(int), np.ones(ITEMS, int)) for name, own in answers().items()}
    processes, items = [], {}
    for block in plan.blocks:
        work = plan.works[block.work]
        for place in block.order:
            contestant = plan.contestants[place].text
            factor = 1 + random.Random(f"{seed} {block.number} {place}").gauss(0, noise) + place
            process = a_process(block.number, contestant, times_ns[work.model] * factor, work)
            process.scores = {"top1": score_of("top1", [parts[work.model]])}
            process.memory = Memory({"peak": int(1e6 * times_ns[work.model])})
            processes.append(process)
            items[contestant, work.id] = {"top1": parts[work.model]}
    return processes, items
