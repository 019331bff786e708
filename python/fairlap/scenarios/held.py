"""What a worker holds of its contestant, as the functions that serve a scenario's requests get it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Contestant, Framework, Settings
from fairlap.frameworks.contract_parts.work_place import WHERE_WORK_IS
from fairlap.meters.memory import Memory, MemoryMeter
from fairlap.request.work import Mode, Precision
from fairlap.scenarios.calls.latency_messages import Feeding, Measure

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.models.arrays import Arrays
    from fairlap.models.workload import Workload
    from fairlap.scenarios.calls.timed_inputs import TimedInputs

Part = TypeVar("Part")


class Phases(Protocol):
    now: str

    def __call__(self, name: str) -> AbstractContextManager[None]: ...
    def unreported(self) -> AbstractContextManager[None]: ...


class FedCalls(Protocol):
    feeding: Feeding | None

    def measure(self, request: Measure) -> Measurement: ...
    def time_copies(self) -> None: ...
    def answer(self) -> Mapping[str, Any]: ...
    def close(self) -> None: ...


@dataclass
class Held:
    framework: type[Framework]
    contestant: Contestant
    settings: Settings
    options: Mapping[str, str]
    batch: int
    mode: Mode
    precision: Precision
    sets: Sequence[Arrays]
    unseen: Sequence[str]
    timed: TimedInputs
    phases: Phases
    memory: MemoryMeter
    build: Callable[[Workload], Contestant]  # another contestant with the same settings
    build_alone: Callable[[Workload], Contestant]  # the same, of a rank without the others
    read_again: Callable[[], tuple[Workload, Sequence[Arrays]]]  # a process that is raced does not hold it for this
    fed: FedCalls | None = None  # where a pipeline gives their inputs
    memory_before_second: Memory | None = None
    _was_profiled: bool = False
    _parts: dict[type, Any] = field(default_factory=dict)

    @property
    def elsewhere(self) -> str:
        """Why what is seen of this process is not seen of the work; empty where it is."""
        return WHERE_WORK_IS[self.contestant.work_in]

    def part(self, kind: type[Part], make: Callable[[], Part]) -> Part:
        """Keep what a scenario needs from one request to the next."""
        if kind not in self._parts:
            self._parts[kind] = make()
        found = self._parts[kind]
        assert isinstance(found, kind)
        return found

    def before_second(self) -> None:
        """Read the memory now: a second contestant, or a copy of this one, is about to be in this process."""
        self.memory_before_second = self.memory_at_the_end()

    def memory_at_the_end(self) -> Memory:
        """Read it now, unless it was read before a second contestant."""
        installed_bytes = self.framework.installed_bytes(self.contestant.in_force)
        return self.memory_before_second or self.memory.result(installed_bytes)

    def begin_to_profile(self) -> None:
        self._was_profiled = True

    def require_unprofiled(self) -> None:
        """Profilers slow down what they see, and leave hooks behind."""
        if self._was_profiled:
            raise InvalidRequest("a profiler ran in this process, so nothing in it is timed any more")


def write_arrays(path: str, arrays: Mapping[str, Any]) -> None:
    from fairlap.models.array_files import safetensors

    safetensors.write(Path(path), arrays)
