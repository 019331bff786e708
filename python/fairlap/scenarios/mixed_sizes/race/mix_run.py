"""One process's calls over a mix of sizes: each seen for the first time and proven, then all of them in drawn order."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import numpy as np

from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, under
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import UNSEEN, Materials
from fairlap.race.equal_work.timed_work import require_done
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.race.processes.rotation import Rotation
from fairlap.request.fields.mix import Mix
from fairlap.request.names import ContestantName
from fairlap.scenarios.mixed_sizes.mix_messages import (
    SETS,
    CallsOfSize,
    DrawnAtSize,
    MeasureMix,
    MixFound,
    MixMeasured,
    SeeSize,
    SizeSeen,
)
from fairlap.scenarios.mixed_sizes.race.materials_of_sizes import materials_of_sizes
from fairlap.scenarios.process_result import ProcessResult

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


class MixRun(AfterTurns):
    """``samples`` are the times of all calls by size: ``mix-37/wall_ns``."""

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        mix = materials.work.mix
        assert mix is not None
        self._mix, self._plan, self._block = mix, plan, block
        self._materials = materials
        self._file = scratch / "calls-of-sizes.safetensors"
        drawn = random.Random(f"mix {plan.seed} {block.number}")  # for all contestants of the block alike
        self._seen_in = drawn.sample(range(len(mix.sizes)), len(mix.sizes))
        self._rotation = Rotation(round_of(mix, drawn), plan.measuring)
        self._checked_at = [drawn.randrange(len(mix.sizes)) for _ in UNSEEN]
        self._shares = [drawn.random() for _ in UNSEEN]
        self._seen: dict[int, SizeSeen] = {}
        self._times_ns: list[list[float]] = [[] for _ in mix.sizes]

    def goes_on(self, bench: Bench) -> bool:
        return self._rotation.goes_on

    def begin(self, process: OneProcess) -> None:
        """See every size, in drawn order, and check the answers there."""
        self._at_sizes = materials_of_sizes(self._materials, self._block.data_seed, self._plan.pass_env)
        for place in self._seen_in:
            self._see(place, process.worker, process.result)
        process.result.mix = self._found()

    def step(self, process: OneProcess) -> None:
        if not self._rotation.may_step(process.bench):
            return
        turn, drawn = self._rotation.turn(self._call_s), self._drawn()
        request = MeasureMix(turn.whole, drawn)
        measured = process.ask(request, within_s=self._plan.limits.measure_s)
        times_ns = np.frombuffer(process.worker.raw, dtype="<f8")
        if len(times_ns) != len(request.sizes):
            raise OtherWork(f"{len(times_ns)} times came of {len(request.sizes)} calls", "E_OUTPUT")
        times_ns = times_ns[len(turn.unused) :]
        for place, time_ns in zip(turn.places, times_ns, strict=True):
            self._times_ns[place].append(float(time_ns))
        for place in set(turn.places):
            self.samples[f"mix-{self._mix.label(place)}/wall_ns"] = np.array(self._times_ns[place])
        if drawn is not None:
            self._check_drawn(drawn, measured, process.result)
        self._rotation.took(turn, float(np.nansum(times_ns)) / 1e9)
        process.result.mix = self._found()

    def _see(self, place: int, worker: WorkerProcess, result: ProcessResult) -> None:
        here = self._at_sizes[place]
        self._file.unlink(missing_ok=True)
        label = self._where(place)
        files = tuple(str(here.inputs_file(which)) for which in SETS)
        seen = worker.ask(SeeSize(place, label, files, str(self._file)), within_s=self._plan.limits.prepare_s)
        require_done(seen.reading, seen.first_s, f"the first call at {label}", self._plan.device)
        self._seen[place] = seen
        found = safetensors.read(self._file)
        by_set = {which: under(f"{which}/", found) for which in SETS}
        for which, got in by_set.items():
            self._check(here, got, which, result, f"a call at {label}")
        if here.tells_inputs_apart and len(set(map(_content, by_set.values()))) < len(SETS):
            raise OtherWork(f"its answers at {label} are the same for other inputs", "E_STALE_ANSWER")

    def _check(self, here: Materials, got: Arrays, which: str, result: ProcessResult, where: str) -> None:
        errors = answers.array_errors(here, got, which, WHEN)
        result.errors += [max(errors, key=lambda error: error.distance)] if errors else []
        answers.require_right_on(here, got, which, errors, result.in_force, where)

    def _call_s(self, place: int) -> float:
        times_ns = self._times_ns[place]
        return float(np.nanmedian(times_ns)) / 1e9 if times_ns else self._seen[place].next_s

    def _drawn(self) -> DrawnAtSize | None:
        """One in each of the first turns, on inputs that are used for it alone."""
        if self._rotation.turns >= len(UNSEEN):
            return None
        place = self._checked_at[self._rotation.turns]
        inputs = self._at_sizes[place].inputs_file(UNSEEN[self._rotation.turns])
        self._file.unlink(missing_ok=True)
        return DrawnAtSize(self._shares[self._rotation.turns], place, str(inputs), str(self._file))

    def _check_drawn(self, drawn: DrawnAtSize, measured: MixMeasured, result: ProcessResult) -> None:
        where = f"a timed call at {self._where(drawn.size)}"
        require_done(measured.reading, (measured.drawn_ns or 0.0) / 1e9, where, self._plan.device)
        got = safetensors.read(self._file)
        self._check(self._at_sizes[drawn.size], got, UNSEEN[self._rotation.turns], result, where)

    def _where(self, place: int) -> str:
        return ",".join(f"{name}={size}" for name, size in self._mix.dims(place))

    def _found(self) -> MixFound:
        graphs = [each.graphs for each in self._seen.values() if each.graphs is not None]
        return MixFound(tuple(map(self._of_size, range(len(self._mix.sizes)))), max(graphs, default=None))

    def _of_size(self, place: int) -> CallsOfSize:
        times_ns, seen = self._times_ns[place], self._seen.get(place)
        found = CallsOfSize(
            self._mix.label(place),
            self._mix.calls[place],
            float(np.nanmedian(times_ns)) if times_ns else None,
            len(times_ns),
        )
        if seen is None or place == self._mix.usual:  # prepared for it
            return found
        return msgspec.structs.replace(found, first_s=seen.first_s, compiled=seen.compiled)


def _content(got: Arrays) -> bytes:
    return b"".join(got[name].tobytes() for name in sorted(got))
