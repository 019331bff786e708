"""Training to a score as words: of the command line, and of what a contestant reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fairlap import quantity_text
from fairlap.models.registry import find
from fairlap.race.planning.plan import Plan
from fairlap.render.charts.parts.chart import Chart
from fairlap.render.scenario_side import RenderSide, Summary, Words, number_word, require_command
from fairlap.results.row import Row
from fairlap.scenarios.learning.render.charts import learning_charts, points


def learning_text(row: Row) -> str:
    """``97 % in 418 ms [401, 440], 220 steps, 5e-05 EUR``; empty where no score was asked for."""
    if row.target_score is None or row.reached_share is None:
        return ""
    target = f"{100 * row.target_score:.6g} %"
    if row.time_to_score_s is None or row.steps_to_score is None:
        return f"{target} not reached: {row.absent['time_to_score_s']}"
    took = quantity_text.quantity(row.time_to_score_s.value, "s", row.time_to_score_s.low, row.time_to_score_s.high)
    parts = [f"{target} in {took}", f"{row.steps_to_score:,.0f} steps"]
    if row.step_in_epochs_ns is not None:
        parts[-1] += f" of {quantity_text.duration(row.step_in_epochs_ns.value)}"
    if row.scored_every_epochs is not None and row.scored_every_epochs > 1:
        parts.append(f"scored every {row.scored_every_epochs:.0f} epochs")
    if row.evaluation_to_score_s is not None:
        parts.append(f"{quantity_text.seconds(row.evaluation_to_score_s.value)} of it evaluation")
    if row.energy_to_score_j is not None:
        energy = row.energy_to_score_j
        parts.append(quantity_text.quantity(energy.value, "J", energy.low, energy.high))
    if row.cost_to_score is not None:
        parts.append(f"{quantity_text.number(row.cost_to_score.value)} {row.currency}")
    if row.reached_share < 1:
        parts.append(f"reached by {quantity_text.share(row.reached_share)} of the processes")
    return ", ".join(parts)


class LearningShown(RenderSide):
    summaries = (Summary("score", "target_score", learning_text),)
    tables: ClassVar = {"learning": points}

    def charts(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Chart]:
        return learning_charts() if tables["learning"] else []

    def words(self, plan: Plan) -> Words:
        assert plan.to_score is not None
        words = ["--to-score", number_word(plan.to_score), "--epochs", str(plan.most_epochs)]
        words += ["--count-evaluation"] if plan.count_evaluation else []
        return [*words, *_data(plan), *(["--metric", ",".join(plan.metrics)] if plan.metrics else [])]


def _data(plan: Plan) -> Words:
    learnt = [work.train_on for work in plan.works if work.train_on is not None]
    require_command(len(learnt) == len(plan.works))
    texts, fractions = {data.text for data in learnt}, {data.fraction for data in learnt}
    require_command(len(fractions) == 1)
    if len(texts) > 1:
        own = [work.train_on and work.train_on.text == find(work.model).spec.data_set for work in plan.works]
        require_command(all(own))
    words = ["--train-on", *texts] if len(texts) == 1 else []
    return words + (["--fraction", number_word(*fractions)] if fractions != {1.0} else [])
