"""What workers may be asked by scenarios. Each request names its answer, and what serves it.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import Any

from fairlap.scenarios.agents.agent_messages import TrainAgent
from fairlap.scenarios.asking import Ask
from fairlap.scenarios.calls.latency_messages import Feed, Measure
from fairlap.scenarios.collectives.collective_messages import TimeCollective
from fairlap.scenarios.file_to_answer.stage_messages import MeasureItems, SeeItem
from fairlap.scenarios.learning.training_messages import Epoch, Restore
from fairlap.scenarios.load.load_messages import OfferLoad
from fairlap.scenarios.load.loadgen_messages import LoadGenRun
from fairlap.scenarios.mistakes.mistakes_messages import PlantMistake
from fairlap.scenarios.ranks.ranks_messages import PrepareCollectives, StepAlone
from fairlap.scenarios.rotated.rotated_messages import MeasureMix, SeeSize
from fairlap.scenarios.untimed.allocations_messages import CountAllocations
from fairlap.scenarios.untimed.compilation_messages import Describe, Resize
from fairlap.scenarios.untimed.profile_messages import Overhead, ProfileCalls

ASKS: tuple[type[Ask[Any]], ...] = (
    Feed,
    Measure,
    OfferLoad,
    LoadGenRun,
    SeeSize,
    MeasureMix,
    SeeItem,
    MeasureItems,
    Epoch,
    TrainAgent,
    Restore,
    ProfileCalls,
    Overhead,
    CountAllocations,
    Describe,
    Resize,
    StepAlone,
    PrepareCollectives,
    TimeCollective,
    PlantMistake,
)
