"""The referee: blocks of measurements in, verdicts out.

Pure functions on arrays. Nothing here reads a file, knows a framework, or imports SciPy or
statsmodels before the one function that needs it runs.
"""

from fairlap.verdict.blocks import (
    BadInput,
    BadOption,
    BlockTable,
    Figures,
    NotFinite,
    NotPositive,
    OneBlock,
    OneContestant,
    OneSample,
    UnequalBlocks,
    UnlikeQuantities,
    block_table,
    one_quantity,
)
from fairlap.verdict.comparison import Comparison, Interval, Verdict
from fairlap.verdict.detectable_effects import blocks_needed, blocks_to_claim, power
from fairlap.verdict.exact_tests.rank_sum import shift
from fairlap.verdict.exact_tests.signed_rank import blocks_to_reach
from fairlap.verdict.figures.censored import median_time
from fairlap.verdict.figures.conventional_statistics import MeanAndSpread, Welch, means_and_spreads, welch
from fairlap.verdict.figures.estimates import (
    ContestantFigure,
    ProcessFigure,
    contestant_figure,
    process_figure,
    throughput,
)
from fairlap.verdict.figures.modes import Mode, ModeCause, Modes, find_modes, mode_causes
from fairlap.verdict.figures.rounds import block_figures, halves_of_rounds
from fairlap.verdict.figures.steady_state import Course, SteadyState, course_of_all, steady_state
from fairlap.verdict.judge import decided, design_so_far, judge, too_few_blocks
from fairlap.verdict.late_share import LateShareTest
from fairlap.verdict.looks import Design, Look, looks, possible_looks
from fairlap.verdict.metric import (
    COMPILE_TIME,
    LATENCY,
    METRICS_OF_CALLS,
    REPORTED_TIME,
    THROUGHPUT,
    TIME_PER_REQUEST,
    TIME_TO_FIRST_GRADIENT,
    TIME_TO_SCORE,
    Metric,
)
from fairlap.verdict.noisy_blocks import GateLimits, GateOutcome, noise_gate
from fairlap.verdict.regression import Change, Regression, compare_runs
from fairlap.verdict.scaling.bounded_fit import Bounded
from fairlap.verdict.scaling.latency_bandwidth import LatencyBandwidth, latency_bandwidth
from fairlap.verdict.scaling.ranks import WORTH_A_WARNING, Straggler, difference, slowest_rank
from fairlap.verdict.scaling.universal_scalability import TooFewScales, UniversalScalability, universal_scalability
from fairlap.verdict.sentence import ComparisonText, blocks_to_decide, modes_sentence, sentence, slowdown_sentence
from fairlap.verdict.several_works import GeometricMean, geometric_mean_ratio
from fairlap.verdict.slowdown import MAX_SLOWDOWN, Gate, Slowdown, slowdown, slowdown_of, times_as_long
from fairlap.verdict.standing import Place, Standing, standing
from fairlap.verdict.stopping import StoppingAdvice, StoppingRule, advise
from fairlap.verdict.warnings import StatisticalWarning
from fairlap.verdict.worthwhile_rounds import SEGMENT, RacedBlock, worthwhile_rounds

__all__ = [
    "COMPILE_TIME",
    "LATENCY",
    "MAX_SLOWDOWN",
    "METRICS_OF_CALLS",
    "REPORTED_TIME",
    "SEGMENT",
    "THROUGHPUT",
    "TIME_PER_REQUEST",
    "TIME_TO_FIRST_GRADIENT",
    "TIME_TO_SCORE",
    "WORTH_A_WARNING",
    "BadInput",
    "BadOption",
    "BlockTable",
    "Bounded",
    "Change",
    "Comparison",
    "ComparisonText",
    "ContestantFigure",
    "Course",
    "Design",
    "Figures",
    "Gate",
    "GateLimits",
    "GateOutcome",
    "GeometricMean",
    "Interval",
    "LateShareTest",
    "LatencyBandwidth",
    "Look",
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
    "RacedBlock",
    "Regression",
    "Slowdown",
    "Standing",
    "StatisticalWarning",
    "SteadyState",
    "StoppingAdvice",
    "StoppingRule",
    "Straggler",
    "TooFewScales",
    "UnequalBlocks",
    "UniversalScalability",
    "UnlikeQuantities",
    "Verdict",
    "Welch",
    "advise",
    "block_figures",
    "block_table",
    "blocks_needed",
    "blocks_to_claim",
    "blocks_to_decide",
    "blocks_to_reach",
    "compare_runs",
    "contestant_figure",
    "course_of_all",
    "decided",
    "design_so_far",
    "difference",
    "find_modes",
    "geometric_mean_ratio",
    "halves_of_rounds",
    "judge",
    "latency_bandwidth",
    "looks",
    "means_and_spreads",
    "median_time",
    "mode_causes",
    "modes_sentence",
    "noise_gate",
    "one_quantity",
    "possible_looks",
    "power",
    "process_figure",
    "sentence",
    "shift",
    "slowdown",
    "slowdown_of",
    "slowdown_sentence",
    "slowest_rank",
    "standing",
    "steady_state",
    "throughput",
    "times_as_long",
    "too_few_blocks",
    "universal_scalability",
    "welch",
    "worthwhile_rounds",
]
