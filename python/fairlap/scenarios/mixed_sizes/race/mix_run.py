"""One process's calls over a mix of sizes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlap.models.arrays import Arrays
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import OneProcess
from fairlap.request.fields.sizes.mix import Mix
from fairlap.request.names import ContestantName
from fairlap.scenarios.mixed_sizes.mix_messages import CallsOfSize, MixFound
from fairlap.scenarios.mixed_sizes.race.materials_of_sizes import materials_of_sizes
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.rotated.race.rotated_calls import RotatedCalls, require_different

WHEN = "at a size of the mix"
"""``AnswerError.when`` of an answer at one of the sizes."""

_LONGEST_ROUND = 128  # calls, unless there are more sizes


def round_of(mix: Mix, drawn: random.Random) -> list[int]:
    """Draw the order of the calls that are made again and again: places in the mix, each about as often as it occurs.

    A rare size has one call in it. Its weight in the figure is its share in the file all the same.
    """
    length = min(mix.total, _LONGEST_ROUND)
    places = [place for place, share in enumerate(mix.shares) for _ in range(max(1, round(share * length)))]
    drawn.shuffle(places)
    return places


class MixRun(RotatedCalls):
    prefix = "mix"

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        mix = materials.work.mix
        assert mix is not None
        self._mix = mix
        drawn = random.Random(f"mix {plan.seed} {block.number}")
        self._begin_order([mix.label(place) for place in range(len(mix.sizes))], round_of(mix, drawn), drawn)

    def begin(self, process: OneProcess) -> None:
        self._at_sizes = materials_of_sizes(self._materials, self._block.data_seed, self._plan.pass_env)
        super().begin(process)

    def inputs_file(self, place: int, which: str) -> Path:
        return self._at_sizes[place].inputs_file(which)

    def where(self, place: int) -> str:
        return ",".join(f"{name}={size}" for name, size in self._mix.dims(place))

    def hold_seen(self, place: int, by_set: Mapping[str, Arrays], result: ProcessResult) -> None:
        for which, got in by_set.items():
            self.hold_drawn(place, which, got, result, f"a call at {self.where(place)}")
        if self._at_sizes[place].tells_inputs_apart:
            require_different(by_set, self.where(place))

    def hold_drawn(self, place: int, which: str, got: Arrays, result: ProcessResult, where: str) -> None:
        here = self._at_sizes[place]
        errors = answers.array_errors(here, got, which, WHEN)
        result.errors += [max(errors, key=lambda error: error.distance)] if errors else []
        answers.require_right_on(here, got, which, errors, result.in_force, where)

    def record(self, result: ProcessResult) -> None:
        graphs = [each.graphs for each in self._seen.values() if each.graphs is not None]
        result.mix = MixFound(tuple(map(self._of_size, range(len(self._mix.sizes)))), max(graphs, default=None))

    def _of_size(self, place: int) -> CallsOfSize:
        seen = self._seen.get(place)
        found = CallsOfSize(
            self._mix.label(place),
            self._mix.calls[place],
            self._median_ns(place),
            len(self._times_ns[place]),
        )
        if seen is None or place == self._mix.usual:  # prepared for it
            return found
        return msgspec.structs.replace(found, first_s=seen.first_s, compiled=seen.compiled)
