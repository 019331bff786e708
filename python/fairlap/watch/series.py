"""One metric of one device over the last minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlap.watch.metrics import BYTES, WATTS, Metric

HISTORY_S = 60.0
_MOST_POINTS = 1_000
NO_ENERGY_COUNTED = "its counter did not change in this interval; virtual machines often show a counter that never does"


@dataclass
class Series:
    """The value now, or the reason why it is absent. ``take`` receives the readings of an interval."""

    metric: Metric
    labels: dict[str, str]
    group: str
    wraps_at: float = 0.0  # of a counter, in the field's unit; 0: it never wraps
    absent: str = "not read yet"
    value: float | None = None  # in base units: mean over the interval, the latest, or a counter's total
    per_second: float | None = None  # of a counter
    history: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_MOST_POINTS))
    _last_raw: float | None = None
    _wrapped: float = 0.0
    _before: tuple[int, float] | None = None  # of a counter: when, and the total

    @property
    def shown(self) -> float | None:
        """The number that people see; of a counter, its increase per second."""
        return self.per_second if self.metric.counter else self.value

    def take(self, now_s: float, times_ns: Sequence[int], raw: Sequence[float]) -> None:
        self.absent = ""
        if self.metric.counter:
            self._count(times_ns, raw)
        elif self.metric.bit:
            self.value = float(any(int(bits) & self.metric.bit for bits in raw))
        else:
            value = self.metric.scale * (raw[-1] if self.metric.latest else sum(raw) / len(raw))
            self.value = float(round(value)) if self.metric.unit is BYTES else value
        if self.shown is not None:
            self.history.append((now_s, self.shown))
        while self.history and self.history[0][0] < now_s - HISTORY_S:
            self.history.popleft()

    def be_absent(self, reason: str) -> None:
        self.absent = reason
        self.value = self.per_second = None

    def _count(self, times_ns: Sequence[int], raw: Sequence[float]) -> None:
        restarted = False
        for number in raw:
            if self._last_raw is not None and number < self._last_raw:
                self._wrapped += self.wraps_at
                restarted |= self.wraps_at == 0.0
            self._last_raw = number
        total = self.metric.scale * (raw[-1] + self._wrapped)
        if self.metric.unit is WATTS and self._before is not None and total == self._before[1]:
            self.be_absent(NO_ENERGY_COUNTED)  # hardware that runs always draws power
            return
        self.per_second = None
        if self._before is not None and not restarted and times_ns[-1] > self._before[0]:
            self.per_second = (total - self._before[1]) / (times_ns[-1] - self._before[0]) * 1e9
        self._before = (times_ns[-1], total)
        self.value = total
