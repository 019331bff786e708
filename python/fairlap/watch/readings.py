"""What every sensor of this machine says now: the sampler's readings, gathered interval by interval.

Something that is not there, and why.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from fairlap.engine.telemetry import Sampler
from fairlap.machine.root import Root
from fairlap.watch.gpu_metrics import EVERY_GPU
from fairlap.watch.machine_metrics import read_machine_files
from fairlap.watch.metric_table import NOT_WATCHED, device_of, metrics_of, place_of
from fairlap.watch.metrics import Metric
from fairlap.watch.series import Series


@dataclass(frozen=True)
class Absence:
    source: str
    metrics: tuple[str, ...]  # that it lacks; none: the whole source
    why: str

    @property
    def what(self) -> str:
        return f"{self.source}: {'; '.join(self.metrics)}" if self.metrics else self.source

    @property
    def shortly(self) -> str:
        more = f" and {len(self.metrics) - 1} more" if len(self.metrics) > 1 else ""
        return f"{self.source}: {self.metrics[0].replace('_', ' ')}{more}" if self.metrics else self.source


_READING, _LOST = 0, 2  # states of a reading; the one between them failed alone
_FAST_PERIOD_S = 0.1
_SLOW_PERIOD_S = 1.0


class ReadingsNow:
    """Watches from entry to exit of a ``with`` block. ``take_in`` once an interval; ``series`` is as of then."""

    def __init__(self, interval_s: float, *, root: str = "", nvml_library: str = "") -> None:
        self.interval_s = interval_s
        self.taken_s = 0.0  # when the interval ended
        self._root = Root(root or "/")
        # Several times an interval, so that each has readings however late a round is.
        self.sampler = Sampler(
            fast_period_s=min(interval_s / 10, _FAST_PERIOD_S),
            slow_period_s=min(interval_s / 3, _SLOW_PERIOD_S),
            rare_period_s=min(interval_s / 3, _SLOW_PERIOD_S),
            root=root,
            nvml_library=nvml_library,
        )
        self.series: list[Series] = []
        self.sources: dict[str, str] = {}  # why each is absent; empty: present
        self._missing: list[tuple[Metric, str, str]] = []  # fields that never were there: metric, source, why
        self._read: dict[tuple[int, int], list[Series]] = defaultdict(list)
        self._from_files: dict[tuple[str, str], list[Series]] = defaultdict(list)
        self._lock = threading.Lock()
        self._find_series()

    def __enter__(self) -> ReadingsNow:
        self.sampler.start()
        self.take_in()  # what a counter's growth is counted from
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sampler.stop()

    def take_in(self) -> None:
        """The interval that ends now."""
        self.taken_s = now_s = time.monotonic()
        now_ns = time.monotonic_ns()
        table = np.asarray(self.sampler.collect())
        files = read_machine_files(self._root)
        with self._lock:
            for (source, field), of_field in self._read.items():
                rows = table[(table["source"] == source) & (table["field"] == field)]
                for series in of_field:
                    self._take_rows(series, now_s, rows)
            for place, of_file in self._from_files.items():
                told = files[place]
                for series in of_file:
                    if isinstance(told, str):
                        series.be_absent(told)
                    else:
                        series.take(now_s, [now_ns], [told])

    @contextmanager
    def held_still(self) -> Iterator[None]:
        """No interval ends meanwhile: for readers on other threads."""
        with self._lock:
            yield

    def absences(self) -> list[Absence]:
        """What is absent, and why; what one source lacks for one reason is told together."""
        told = [Absence(source, (), why) for source, why in self.sources.items() if why]
        lacking: dict[tuple[str, str], list[str]] = defaultdict(list)
        absent_now = [(each.metric, each.labels["source"], each.absent) for each in self.series if each.absent]
        for metric, source, why in [*self._missing, *absent_now]:
            name = f"{metric.name} ({metric.reason})" if metric.reason else metric.name
            if name not in lacking[source, why]:
                lacking[source, why].append(name)
        return told + [Absence(source, tuple(names), why) for (source, why), names in lacking.items()]

    def _take_rows(self, series: Series, now_s: float, rows: NDArray[np.void]) -> None:
        good = rows[rows["state"] == _READING]
        bad = rows[rows["state"] != _READING]
        lost = bad[bad["state"] == _LOST]
        if len(lost):
            why = self.sampler.text_of(int(lost[-1]["source"]), int(lost[-1]["code"]))
            series.be_absent(f"the device is gone: {why}")
        elif len(good):
            series.take(now_s, good["time_ns"].tolist(), good["value"].tolist())
        elif len(bad):
            why = self.sampler.text_of(int(bad[-1]["source"]), int(bad[-1]["code"]))
            series.be_absent(f"reading it failed: {why}")
        elif not series.absent:
            series.be_absent("no reading of it came in this interval")

    def _find_series(self) -> None:
        for source_number, source in enumerate(self.sampler.sources):
            if source.name in NOT_WATCHED:
                continue
            self.sources[source.name] = source.absent_because
            for field_number, found in enumerate(source.fields):
                for metric in metrics_of(source.name, found.name):
                    if source.absent_because:
                        continue
                    if found.absent_because:
                        self._missing.append((metric, source.name, found.absent_because))
                        continue
                    series = _series(metric, source.name, found.name, found.wraps_at)
                    self._read[source_number, field_number].append(series)
                    self.series.append(series)
        for (name, field), told in read_machine_files(self._root).items():
            self.sources[name] = told if isinstance(told, str) else ""
            for metric in metrics_of(name, field):
                if not isinstance(told, str):
                    series = _series(metric, name, field, 0.0)
                    self._from_files[name, field].append(series)
                    self.series.append(series)
        self.series.sort(key=lambda each: place_of(each.metric, each.labels.get("device", "")))


def _series(metric: Metric, source: str, field: str, wraps_at: float) -> Series:
    device = device_of(source, field)
    labels = {"source": source.partition(":")[0], **metric.labels}
    if device:
        labels["device"] = device
    group = f"{metric.group} {device}" if metric.source == EVERY_GPU else metric.group
    return Series(metric, labels, group, wraps_at)
