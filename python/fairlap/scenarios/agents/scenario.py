"""The scenario of agents that learn to act: ranked by the time until their mean return reaches a score.

The score is the mean return over the largest one there is, so 95 % of CartPole's 500 is 475.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from fairlap import verdict
from fairlap.models.modes import MODES
from fairlap.request.work import Work
from fairlap.scenarios.added import AddedFigure
from fairlap.scenarios.contract import Asked
from fairlap.scenarios.learning.scenario import TrainingToAScore
from fairlap.scenarios.process_result import ProcessResult


def _environment_s(process: ProcessResult) -> float | None:
    return None if process.agent is None else process.agent.environment_s


def _inference_s(process: ProcessResult) -> float | None:
    return None if process.agent is None else process.agent.inference_s


def _learning_s(process: ProcessResult) -> float | None:
    return None if process.agent is None else process.agent.learning_s


def _steps_to_score(process: ProcessResult) -> float | None:
    """Infinite where the process did not reach it."""
    if process.learning is None:
        return None
    reached = process.learning.reached
    return math.inf if reached is None else float(reached.steps)


def _seconds_to_score(process: ProcessResult) -> float | None:
    if process.learning is None:
        return None
    reached = process.learning.reached
    return math.inf if reached is None else reached.trained_s


_TOO_FEW = "a quarter of the processes or more did not reach the score"
_NOT_TRAINED = "a process was not trained"


class LearningToAct(TrainingToAScore):
    after_turns = "fairlap.scenarios.agents.race.agent_run:AgentRun"
    race_side = "fairlap.scenarios.agents.race.from_request:AgentsFromRequest"
    results_side = ""  # its columns are those of training to a score
    render_side = "fairlap.scenarios.agents.render.shown:AgentsShown"
    data_seeds = tuple(range(10))  # a seed is what a process is evidence of
    quantities = ()  # those of training to a score are of it too
    judged_before = ()
    figures = (
        AddedFigure("iqm_steps_to_score", _steps_to_score, _TOO_FEW, verdict.interquartile_mean),
        AddedFigure("iqm_time_to_score_s", _seconds_to_score, _TOO_FEW, verdict.interquartile_mean),
        AddedFigure("environment_s", _environment_s, _NOT_TRAINED),
        AddedFigure("inference_s", _inference_s, _NOT_TRAINED),
        AddedFigure("learning_s", _learning_s, _NOT_TRAINED),
    )

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return MODES[work.mode].acts and asked.to_score is not None

    def reaches(self, work: Work) -> Iterable[str]:
        return ()
