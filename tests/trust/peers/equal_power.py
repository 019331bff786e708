"""Seconds to a verdict at equal power: races in rounds until decided, and the rules of pyperf and of Welch.

Blocks of a callable against itself are recorded once, in rounds, with the time at which each ended. A race is then
started at every block in turn: the times of the second are made longer by the effect, and the race ends when it is
decided, or with its budget. Of the peers' processes, as many are taken as the rule needs to find the effect as often.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from fairlap.race.counted_blocks import work_blocks
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.progress import Silence
from fairlap.race.race import Race
from fairlap.race.self_test import Trial
from fairlap.request.names import contestant_named
from fairlap.request.race_request import DEFAULT_BUDGET_S
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult

from ..generators import Floats
from ..until_decided import until_decided
from .recording import Recording
from .rules import Called, pyperf, welch

EFFECTS = (0.02, 0.05)
Decide = Callable[[Floats, Floats], Called]
RULES: dict[str, Decide] = {"pyperf compare_to": pyperf, "hyperfine's runs, Welch's t test": welch}


@dataclass(frozen=True, eq=False)
class RecordedBlocks:
    """Of a contestant against itself: the log ratio of each block, and the seconds until it had ended."""

    log_ratios: Floats
    seconds: Floats


@dataclass(frozen=True)
class Row:
    tool: str
    effect: float
    found: float  # share of verdicts
    false: float  # share of verdicts on identical processes, with as many of them
    seconds: float | None  # None where all processes that were recorded did not suffice
    processes: float  # of each side


class _BlockEnds(Silence):
    def __init__(self) -> None:
        self.at_s: list[float] = []

    def block_over(self, processes: Sequence[ProcessResult]) -> None:
        self.at_s.append(time.monotonic())


def record_blocks(blocks: int, seed: int) -> RecordedBlocks:
    """Record the workload of the peers, in a race that takes turns, on one core."""
    cores = (min(os.sched_getaffinity(0)),)
    callable_name = contestant_named("python:call=tests.trust.peers.work.expression")
    trial = Trial(callable_name, Work("callable", 1), threads=1, cores=cores)
    plan = draw_plan(
        trial.pair,
        (trial.work,),
        blocks=blocks,
        conditions="controlled",
        threads=1,
        available_cores=cores,
        seed=seed,
        measuring=Measuring(seconds=trial.seconds),
        until_decided=True,
    )
    ends = _BlockEnds()
    race = Race(plan, ends)
    began_s = time.monotonic()
    race.run()
    [found] = work_blocks(plan, race.processes, "controlled")
    assert found.table is not None, found.why_no_verdict
    logs = found.table.log_figures
    assert len(logs) == len(ends.at_s), "a block has no figure"
    return RecordedBlocks(logs[:, 0] - logs[:, 1], np.diff([began_s, *ends.at_s]))


def rows(blocks: RecordedBlocks, recording: Recording) -> list[Row]:
    found = []
    for effect in EFFECTS:
        ours = _races(blocks, effect)
        found.append(ours)
        found += [_as_often(name, rule, recording, effect, ours.found) for name, rule in RULES.items()]
    return found


def _races(blocks: RecordedBlocks, effect: float) -> Row:
    """Race from every block on; a race's first block starts its processes alone, as the first recorded did."""
    later_s = float(np.median(blocks.seconds[1:]))
    most = 1 + int((DEFAULT_BUDGET_S - blocks.seconds[0]) / later_s)
    starts = range(len(blocks.log_ratios))

    def ended(true_effect: float, start: int) -> tuple[int, float]:
        taken = np.roll(blocks.log_ratios, -start)[:most]
        race = until_decided(np.column_stack([taken, np.full(len(taken), np.log1p(true_effect))]))
        return race.blocks, float(race.signs[0])

    different = [ended(effect, start) for start in starts]
    false = [ended(0.0, start)[1] != 0 for start in starts]
    used = float(np.mean([count for count, _ in different]))
    seconds = float(blocks.seconds[0]) + (used - 1) * later_s
    found = float(np.mean([sign < 0 for _, sign in different]))
    return Row("fairlap, until decided", effect, found, float(np.mean(false)), seconds, used)


def _as_often(tool: str, decide: Decide, recording: Recording, effect: float, found: float) -> Row:
    """Find the fewest processes of each side, one after the other, that find the effect as often as we do."""
    samples = recording.samples_ns
    share = 0.0
    counts = np.unique(np.geomspace(2, len(samples) // 2, 40).astype(int))
    for count in counts:
        starts = range(0, len(samples), max(1, count // 4))
        windows = [np.roll(samples, -start, axis=0)[: 2 * count] for start in starts]
        share = _share(decide, windows, effect)
        if share >= found:
            false = _share(decide, windows, 0.0)
            return Row(tool, effect, share, false, 2 * count * recording.seconds_per_process, float(count))
    return Row(tool, effect, share, _share(decide, windows, 0.0), None, float(counts[-1]))


def _share(decide: Decide, windows: Sequence[Floats], effect: float) -> float:
    """Of windows in which the rule finds the effect; at no effect, in which it claims any."""
    called = [decide(each[: len(each) // 2], each[len(each) // 2 :] * (1 + effect)) for each in windows]
    return float(np.mean([each == "a" if effect else each != "neither" for each in called]))


def as_markdown(found: Sequence[Row]) -> str:
    lines = [
        "| true difference | tool | found | false positives | processes of each side | seconds to a verdict |",
        "| --- " * 6 + "|",
    ]
    for row in found:
        seconds = "never, with those recorded" if row.seconds is None else f"{row.seconds:.1f}"
        lines.append(
            f"| {row.effect:.0%} | {row.tool} | {row.found:.0%} | {row.false:.0%} | {row.processes:.1f} | {seconds} |"
        )
    return "\n".join(lines) + "\n"
