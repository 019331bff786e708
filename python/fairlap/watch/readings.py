"""The current reading of every sensor, gathered interval by interval, and what is absent with the reason."""

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

from fairlap.engine._native import ReadingState
from fairlap.engine.sampling.telemetry import Sampler
from fairlap.machine.root import Root
from fairlap.watch.gpu_metrics import EVERY_GPU, GPU_METRICS
from fairlap.watch.machine_metrics import MACHINE_METRICS, read_machine_files
from fairlap.watch.metrics import WATTS, Metric
from fairlap.watch.series import Series

METRICS = GPU_METRICS + MACHINE_METRICS
"""The terminal, the lines, the Prometheus metrics and the Grafana dashboard all follow from this table."""

_GROUPS = tuple(dict.fromkeys(metric.group for metric in METRICS))
_ENERGY = "energy_j"
_FAST_PERIOD_S = 0.1
_SLOW_PERIOD_S = 1.0


@dataclass(frozen=True)
class Absence:
    source: str
    metrics: tuple[str, ...]  # empty: the whole source is absent
    why: str

    @property
    def what(self) -> str:
        return f"{self.source}: {'; '.join(self.metrics)}" if self.metrics else self.source

    @property
    def summary(self) -> str:
        more = f" and {len(self.metrics) - 1} more" if len(self.metrics) > 1 else ""
        return f"{self.source}: {self.metrics[0].replace('_', ' ')}{more}" if self.metrics else self.source


class ReadingsNow:
    """Samples from entry to exit of a ``with`` block. ``series`` is as of the last call of ``end_interval``."""

    def __init__(self, interval_s: float, *, root: str = "", nvml_library: str = "") -> None:
        self.interval_s = interval_s
        self.taken_s = 0.0  # when the interval ended
        self._root = Root(root or "/")
        # Several times per interval, so that each has readings even if a round is late.
        self.sampler = Sampler(
            fast_period_s=min(interval_s / 10, _FAST_PERIOD_S),
            slow_period_s=min(interval_s / 3, _SLOW_PERIOD_S),
            rare_period_s=min(interval_s / 3, _SLOW_PERIOD_S),
            root=root,
            nvml_library=nvml_library,
        )
        self.series: list[Series] = []
        self.sources: dict[str, str] = {}  # the reason why each is absent; empty: present
        self._missing: list[tuple[Metric, str, str]] = []  # absent from the start: metric, source, reason
        self._read: dict[tuple[int, int], list[Series]] = defaultdict(list)
        self._from_files: dict[tuple[str, str], list[Series]] = defaultdict(list)
        self._lock = threading.Lock()
        self._find_series()

    def __enter__(self) -> ReadingsNow:
        self.sampler.start()
        self.end_interval()  # the start of every counter
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sampler.stop()

    def end_interval(self) -> None:
        """Take in what was read since the last call."""
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
                number = files[place]
                for series in of_file:
                    if isinstance(number, str):
                        series.be_absent(number)
                    else:
                        series.take(now_s, [now_ns], [number])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No interval ends meanwhile; for readers on other threads."""
        with self._lock:
            yield

    def absences(self) -> list[Absence]:
        """List what is absent, and why; metrics of one source with the same reason are listed together."""
        whole = [Absence(source, (), why) for source, why in self.sources.items() if why]
        lacking: dict[tuple[str, str], list[str]] = defaultdict(list)
        absent_now = [(each.metric, each.labels["source"], each.absent) for each in self.series if each.absent]
        for metric, source, why in [*self._missing, *absent_now]:
            name = f"{metric.name} ({metric.reason})" if metric.reason else metric.name
            if name not in lacking[source, why]:
                lacking[source, why].append(name)
        return whole + [Absence(source, tuple(names), why) for (source, why), names in lacking.items()]

    def _take_rows(self, series: Series, now_s: float, rows: NDArray[np.void]) -> None:
        good = rows[rows["state"] == ReadingState.reading]
        bad = rows[rows["state"] != ReadingState.reading]
        lost = bad[bad["state"] == ReadingState.source_lost]
        if len(lost):
            why = self.sampler.text_of(int(lost[-1]["source"]), int(lost[-1]["code"]))
            series.be_absent(f"the device is gone: {why}")
        elif len(good):
            series.take(now_s, good["time_ns"].tolist(), good["value"].tolist())
        elif len(bad):
            why = self.sampler.text_of(int(bad[-1]["source"]), int(bad[-1]["code"]))
            series.be_absent(f"reading it failed: {why}")
        elif not series.absent:
            series.be_absent("it was not read in this interval")

    def _find_series(self) -> None:
        for source_number, source in enumerate(self.sampler.sources):
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
        self._find_series_in_files()
        self.series.sort(key=lambda each: _order_of(each.metric, each.labels.get("device", "")))

    def _find_series_in_files(self) -> None:
        files = read_machine_files(self._root)
        there = {name for (name, _), number in files.items() if not isinstance(number, str)}
        for (name, field), number in files.items():
            self.sources[name] = "" if name in there else str(number)
            for metric in metrics_of(name, field):
                if not isinstance(number, str):
                    series = _series(metric, name, field, 0.0)
                    self._from_files[name, field].append(series)
                    self.series.append(series)
                elif name in there:
                    self._missing.append((metric, name, number))


def metrics_of(source: str, field_name: str) -> list[Metric]:
    """Of one field of a source of the sampler; empty for a field that is not watched."""
    kind = EVERY_GPU if source.startswith(EVERY_GPU) else source
    found = [metric for metric in METRICS if (metric.source, metric.field) == (kind, field_name)]
    if not found and field_name.endswith(_ENERGY):
        found = [_processor_energy(source, field_name)]
    return found


def _processor_energy(source: str, field_name: str) -> Metric:
    """Zones differ from machine to machine: packages, cores, memory, the whole platform."""
    part = _device_of(source, field_name).rpartition(" ")[2]
    return Metric(
        source,
        field_name,
        "cpu_energy_joules",
        "Energy used by a part of the processor; parts may contain each other.",
        WATTS,
        "Processor",
        f"power {part}".strip(),
        counter=True,
        essential=True,
    )


def _order_of(metric: Metric, device: str) -> tuple[int, int, int]:
    """By group, GPU after GPU, in the order of the table. Energy of the processor comes first in its group."""
    gpu = int(device) if metric.source == EVERY_GPU else 0
    return _GROUPS.index(metric.group), gpu, METRICS.index(metric) if metric in METRICS else -1


def _device_of(source: str, field_name: str) -> str:
    """``0`` of ``nvml:0``, ``intel-rapl:0 package-0`` of its energy; empty for what has no devices."""
    if source.startswith(EVERY_GPU):
        return source.partition(":")[2]
    return field_name.removesuffix(_ENERGY).strip() if field_name.endswith(_ENERGY) else ""


def _series(metric: Metric, source: str, field: str, wraps_at: float) -> Series:
    device = _device_of(source, field)
    labels = {"source": source.partition(":")[0], **metric.labels}
    if device:
        labels["device"] = device
    group = f"{metric.group} {device}" if metric.source == EVERY_GPU else metric.group
    return Series(metric, labels, group, wraps_at)
