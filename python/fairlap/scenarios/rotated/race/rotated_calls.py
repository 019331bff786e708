"""One process's calls on several inputs in turn: each seen for the first time and proven, then all in drawn order."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, under
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import UNSEEN, Materials
from fairlap.race.equal_work.timed_work import require_done
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.race.processes.rotation import Rotation
from fairlap.request.names import ContestantName
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.rotated.rotated_messages import SETS, DrawnAtSize, MeasureMix, MixMeasured, SeeSize, SizeSeen


class RotatedCalls(AfterTurns):
    """A place is what calls are on in turn: a size, or a tolerance.

    ``samples`` are the times of all calls by place: ``mix-37/wall_ns``. A subclass fills ``self._labels``, which name
    the places in samples, and calls ``self._begin_order`` with the places of a round before the first step.
    """

    prefix: ClassVar[str]  # of samples

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        self._plan, self._block, self._materials = plan, block, materials
        self._file = scratch / f"{self.prefix}-answers.safetensors"
        self._seen: dict[int, SizeSeen] = {}

    def _begin_order(self, labels: Sequence[str], order: Sequence[int], drawn: random.Random) -> None:
        """Draw in which order places are seen, and which timed calls are checked: for all contestants alike."""
        self._labels = labels
        self._seen_in = drawn.sample(range(len(labels)), len(labels))
        self._rotation = Rotation(order, self._plan.measuring)
        self._checked_at = [drawn.randrange(len(labels)) for _ in UNSEEN]
        self._shares = [drawn.random() for _ in UNSEEN]
        self._times_ns: list[list[float]] = [[] for _ in labels]

    @abstractmethod
    def inputs_file(self, place: int, which: str) -> Path:
        """Find or write the inputs of a place; ``which`` is one of SETS or UNSEEN."""

    @abstractmethod
    def where(self, place: int) -> str:
        """Name the place for people."""

    @abstractmethod
    def hold_seen(self, place: int, by_set: Mapping[str, Arrays], result: ProcessResult) -> None:
        """Prove the first answers at a place, by their set."""

    @abstractmethod
    def hold_drawn(self, place: int, which: str, got: Arrays, result: ProcessResult, where: str) -> None:
        """Prove the answer of a timed call on unseen inputs."""

    @abstractmethod
    def record(self, result: ProcessResult) -> None:
        """Put on the result what was found so far."""

    def goes_on(self, bench: Bench) -> bool:
        return self._rotation.goes_on

    def begin(self, process: OneProcess) -> None:
        """See every place, in drawn order, and check the answers there."""
        for place in self._seen_in:
            self._see(place, process.worker, process.result)
        self.record(process.result)

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
            self.samples[f"{self.prefix}-{self._labels[place]}/wall_ns"] = np.array(self._times_ns[place])
        if drawn is not None:
            self._check_drawn(drawn, measured, process.result)
        self._rotation.took(turn, float(np.nansum(times_ns)) / 1e9)
        self.record(process.result)

    def _see(self, place: int, worker: WorkerProcess, result: ProcessResult) -> None:
        self._file.unlink(missing_ok=True)
        where = self.where(place)
        files = tuple(str(self.inputs_file(place, which)) for which in SETS)
        seen = worker.ask(SeeSize(place, where, files, str(self._file)), within_s=self._plan.limits.prepare_s)
        require_done(seen.reading, seen.first_s, f"the first call at {where}", self._plan.device)
        self._seen[place] = seen
        found = safetensors.read(self._file)
        self.hold_seen(place, {which: under(f"{which}/", found) for which in SETS}, result)

    def _call_s(self, place: int) -> float:
        times_ns = self._times_ns[place]
        return float(np.nanmedian(times_ns)) / 1e9 if times_ns else self._seen[place].next_s

    def _median_ns(self, place: int) -> float | None:
        times_ns = self._times_ns[place]
        return float(np.nanmedian(times_ns)) if times_ns else None

    def _drawn(self) -> DrawnAtSize | None:
        """One in each of the first turns, on inputs that are used for it alone."""
        if self._rotation.turns >= len(UNSEEN):
            return None
        place = self._checked_at[self._rotation.turns]
        inputs = self.inputs_file(place, UNSEEN[self._rotation.turns])
        self._file.unlink(missing_ok=True)
        return DrawnAtSize(self._shares[self._rotation.turns], place, str(inputs), str(self._file))

    def _check_drawn(self, drawn: DrawnAtSize, measured: MixMeasured, result: ProcessResult) -> None:
        where = f"a timed call at {self.where(drawn.size)}"
        require_done(measured.reading, (measured.drawn_ns or 0.0) / 1e9, where, self._plan.device)
        got = safetensors.read(self._file)
        self.hold_drawn(drawn.size, UNSEEN[self._rotation.turns], got, result, where)


def require_different(by_set: Mapping[str, Arrays], where: str) -> None:
    """Refuse the same answer to other inputs."""
    if len(set(map(_content, by_set.values()))) < len(by_set):
        raise OtherWork(f"its answers at {where} are the same for other inputs", "E_STALE_ANSWER")


def _content(got: Arrays) -> bytes:
    return b"".join(got[name].tobytes() for name in sorted(got))
