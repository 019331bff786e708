"""What a measurement is: its quantities, and the warnings about them; and as a document, what programs read of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from fairlap import quantity_text
from fairlap.engine.quantity import SHOWN_QUANTILES, MeasuredQuantity, Quantity
from fairlap.errors import FairlapError, NotAvailable
from fairlap.printed_document import PrintedDocument

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer


@dataclass(frozen=True)
class Notice:
    """Something the reader should know before trusting a figure. ``code`` is for programs."""

    code: str
    text: str


@dataclass(frozen=True)
class WarmUp:
    """What ran before the first sample was kept."""

    kind: str  # "none", "calls" (as given) or "found"
    settled: bool
    calls: int
    elapsed_s: float
    first_call_ns: float | None = None  # None if no call came before the first sample

    def __str__(self) -> str:
        if self.kind == "none":
            return "none"
        how = {"calls": "given", "found": "found" if self.settled else "not settled"}[self.kind]
        first = quantity_text.duration(math.nan if self.first_call_ns is None else self.first_call_ns)
        calls = f"{how}, {quantity_text.count(self.calls, 'call')} in {self.elapsed_s:.2g} s"
        return f"{calls}; the first took {first}" if self.calls else calls


class KernelOfCall(msgspec.Struct, frozen=True):
    per_call: float
    ns_per_call: float


class KernelsOfCall(msgspec.Struct, frozen=True):
    kernels: dict[str, KernelOfCall]  # by name
    kernels_absent: str  # why they are not known


class MeasurementDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.measurement/1"):
    """The first quantity is the headline. Every figure is of one process."""

    name: str
    quantities: dict[str, MeasuredQuantity]
    absent: dict[str, str]  # quantities that the method cannot give, and why
    samples: int
    calls_per_sample: int
    stopped_by: str
    elapsed_s: float
    warm_up: WarmUp
    collector_paused: bool
    settings: dict[str, str]
    counts: dict[str, int]
    warnings: tuple[Notice, ...]
    sm_mhz: list[float] | msgspec.UnsetType = msgspec.UNSET  # with --raw, on a GPU: its clock at each sample
    kernels: dict[str, KernelOfCall] | msgspec.UnsetType = msgspec.UNSET  # on a GPU
    kernels_absent: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True)
class Measurement:
    """One measured callable. The first quantity is the headline; all carry their raw samples.

    Every figure speaks of this one process. Two processes that run the same code can differ by more
    than the interval shown; comparing is the verdict's work.
    """

    name: str
    quantities: Mapping[str, Quantity]
    absent: Mapping[str, str]  # quantities this method cannot give, and why
    calls_per_sample: int
    # "samples", "seconds", "target", "full", "interrupt" or "raised"; on a stream also "timeout", "gate", "cuda_error".
    stopped_by: str
    elapsed_s: float
    warm_up: WarmUp
    collector_paused: bool
    settings: Mapping[str, str]  # what was in force: clock, kind of call, stream, gate, cache, ...
    counts: Mapping[str, int] = field(default_factory=dict)  # the groups added up
    warnings: tuple[Notice, ...] = ()
    group_table: Buffer | None = field(default=None, repr=False)

    @property
    def headline(self) -> Quantity:
        return next(iter(self.quantities.values()))

    @property
    def samples(self) -> int:
        return len(self.headline)

    @property
    def interrupted(self) -> bool:
        return self.stopped_by == "interrupt"

    @property
    def median_ns(self) -> float:
        return self.headline.median_ns

    def quantity(self, name: str) -> Quantity:
        if name in self.quantities:
            return self.quantities[name]
        why = self.absent.get(name, f"this measurement has only {', '.join(self.quantities)}")
        raise NotAvailable(f"{self.name} has no {name}: {why}")

    @property
    def wall_ns(self) -> npt.NDArray[np.float64]:
        return self.quantity("wall_ns").values

    @property
    def host_issue_ns(self) -> npt.NDArray[np.float64]:
        return self.quantity("host_issue_ns").values

    @property
    def device_span_ns(self) -> npt.NDArray[np.float64]:
        return self.quantity("device_span_ns").values

    @property
    def kernel_sum_ns(self) -> npt.NDArray[np.float64]:
        return self.quantity("kernel_sum_ns").values

    @property
    def groups(self) -> npt.NDArray[np.void]:
        """Page faults, context switches, migrations and CPU time for each group of neighbouring samples."""
        import numpy as np

        if self.group_table is None:
            raise NotAvailable(f"{self.name} has no groups: its method reads no counters with the samples")
        return np.asarray(self.group_table)

    def __getstate__(self) -> dict[str, Any]:
        """For pickling: the groups are copied out of the engine's memory."""
        return {**self.__dict__, "group_table": None if self.group_table is None else self.groups.copy()}

    def to_dict(self, *, raw: bool = False) -> dict[str, Any]:
        """Plain values for JSON; with ``raw`` also every sample."""
        plain: dict[str, Any] = msgspec.to_builtins(self.document(raw=raw))
        return plain

    def document(self, *, raw: bool = False) -> MeasurementDocument:
        """As ``fairlap time --json`` prints it; with ``raw`` also every sample."""
        return MeasurementDocument(
            name=self.name,
            quantities={name: each.printed(raw=raw) for name, each in self.quantities.items()},
            absent=dict(self.absent),
            samples=self.samples,
            calls_per_sample=self.calls_per_sample,
            stopped_by=self.stopped_by,
            elapsed_s=self.elapsed_s,
            warm_up=self.warm_up,
            collector_paused=self.collector_paused,
            settings=dict(self.settings),
            counts=dict(self.counts),
            warnings=self.warnings,
        )

    def __str__(self) -> str:
        lines = [f"{self.name}"]
        last_method = ""
        for name, quantity in self.quantities.items():
            how = _how_line(quantity)
            lines += [_figure_line(name, quantity), *([how] if how != last_method else [])]
            last_method = how
        calls = "1 call" if self.calls_per_sample == 1 else f"{self.calls_per_sample:,} calls"
        length = f" of {calls} each in {quantity_text.seconds(self.elapsed_s)}" if self.samples else ""
        lines.append(f"  {'samples':<12} {self.samples:,}{length}; stopped by {self.stopped_by}")
        if self.samples or self.warm_up.calls:
            lines.append(f"  {'warm-up':<12} {self.warm_up}")
        in_force = ", ".join(f"{key} {value}" for key, value in self.settings.items())
        paused = "garbage collector paused" if self.collector_paused else "garbage collector as found"
        lines.append(f"  {'in force':<12} {in_force}, {paused}")
        lines += [f"  ! {notice.text} [{notice.code}]" for notice in self.warnings]
        return "\n".join(lines)


def _figure_line(name: str, quantity: Quantity) -> str:
    line = f"  {name.removesuffix('_ns'):<12} {quantity}"
    if quantity.interval.coverage == 0:
        return line
    shown = zip(SHOWN_QUANTILES[1:], quantity.quantiles(SHOWN_QUANTILES[1:]), strict=True)
    return line + "".join(
        f"  p{share * 100:g} {quantity_text.duration(ns, quantity.resolution_ns)}" for share, ns in shown
    )


def _how_line(quantity: Quantity) -> str:
    floor = ", ".join(f"{key.removesuffix('_ns')} {quantity_text.duration(ns)}" for key, ns in quantity.floor.items())
    return f"  {'':<12} by {quantity.method}; floor: {floor}"


class CallableRaised(FairlapError):
    """The timed callable raised. Its exception is the cause; ``result`` holds the samples taken before."""

    code = "E_CALLABLE_RAISED"

    def __init__(self, message: str, result: Measurement) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[CallableRaised], tuple[str, Measurement]]:
        return type(self), (str(self), self.result)
