"""The referee: blocks of measurements in, verdicts out.

Pure functions on arrays. Nothing here reads a file, knows a framework, or imports SciPy, statsmodels,
ruptures or arch before the one function that needs it runs.
"""

from .blocks import BlockTable, block_table
from .comparison import Comparison, Interval, Verdict
from .contestant_figure import ContestantFigure, contestant_figure
from .doubts import Doubt
from .errors import (
    BadInput,
    BadOption,
    NotFinite,
    NotPositive,
    OneBlock,
    OneContestant,
    OneSample,
    UnequalBlocks,
)
from .expected_beside import MeanAndSpread, Welch, means_and_spreads, welch
from .judge import judge
from .metric import COMPILE_TIME, LATENCY, THROUGHPUT, TIME_TO_FIRST_GRADIENT, Metric
from .mode_causes import ModeCause, mode_causes
from .modes import Mode, Modes, find_modes
from .noise_gate import GateLimits, GateOutcome, noise_gate
from .planning import blocks_needed, blocks_to_claim, power
from .process_figure import ProcessFigure, process_figure, throughput
from .regression import Change, Regression, compare_runs
from .sentence import modes_sentence, sentence, sentence_about_a
from .standing import Place, Standing, standing
from .steady_state import Course, SteadyState, course_of_all, steady_state
from .stopping import StoppingAdvice, StoppingRule, advise

__all__ = [
    "COMPILE_TIME",
    "LATENCY",
    "THROUGHPUT",
    "TIME_TO_FIRST_GRADIENT",
    "BadInput",
    "BadOption",
    "BlockTable",
    "Change",
    "Comparison",
    "ContestantFigure",
    "Course",
    "Doubt",
    "GateLimits",
    "GateOutcome",
    "Interval",
    "MeanAndSpread",
    "Metric",
    "Mode",
    "ModeCause",
    "Modes",
    "NotFinite",
    "NotPositive",
    "OneBlock",
    "OneContestant",
    "OneSample",
    "Place",
    "ProcessFigure",
    "Regression",
    "Standing",
    "SteadyState",
    "StoppingAdvice",
    "StoppingRule",
    "UnequalBlocks",
    "Verdict",
    "Welch",
    "advise",
    "block_table",
    "blocks_needed",
    "blocks_to_claim",
    "compare_runs",
    "contestant_figure",
    "course_of_all",
    "find_modes",
    "judge",
    "means_and_spreads",
    "mode_causes",
    "modes_sentence",
    "noise_gate",
    "power",
    "process_figure",
    "sentence",
    "sentence_about_a",
    "standing",
    "steady_state",
    "throughput",
    "welch",
]
