"""Truth: spin kernels measure their length in cycles of the device, and each method is compared with that.

No framework takes part. A method's reading includes the start and end of a kernel, which the kernel cannot see; its
reading of a kernel that does not spin is therefore its floor, and errors are given with and without it. All lengths and
the floor are read in turns, since what a launch takes changes within seconds: on one H100 from 3.1 to 4.9 us.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..driver import PrimaryContext, Spinner
from ..record import Deadline, NotHere, PartRecord, Step

LENGTHS_NS: tuple[int, ...] = (
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    10_000_000,
)
IN_ONE_INTERVAL = 32
LONGEST_IN_ONE_INTERVAL_NS = 100_000
ABOVE_NS = 5_000  # a single pair of events resolves no less
DIFFERENCE_ROUNDS = 7
LITTLE_WORK_CYCLES = 20_000
TURNS = 5
LEAST_SAMPLES, MOST_SAMPLES, SECONDS_FOR_ONE = 10, 200, 0.12  # of a length in a turn
# Starting and ending a kernel takes two to seven microseconds that no timestamp inside it sees: that is the floor.
# Above it a figure is off by the steps of two clocks, and by the parts per million by which they run apart.
MOST_OVER_FLOOR_NS, MOST_OF_LENGTH = 500, 0.001
MOST_FLOOR_NS = {"kernel_sum": 10_000, "device_span, gate stream_wait": 15_000}


@dataclass(frozen=True)
class Spun:
    """What was read of spins of one length in one turn, and what they measured themselves."""

    read_ns: float
    truth_ns: float
    result: Any

    @property
    def error_ns(self) -> float:
        return self.read_ns - self.truth_ns


@dataclass(frozen=True)
class Way:
    """A way to time a call on a stream."""

    name: str
    options: dict[str, Any]
    calls: int = 1
    hidden: bool = False


WAYS = (
    Way("device_span, gate stream_wait", {"method": "device_span", "gate": "stream_wait"}),
    Way("device_span, gate spin", {"method": "device_span", "gate": "spin"}),
    Way("device_span, no gate", {"method": "device_span", "gate": "none"}),
    Way(f"device_span, {IN_ONE_INTERVAL} in one", {"method": "device_span"}, calls=IN_ONE_INTERVAL),
    Way("kernel_sum", {"method": "kernel_sum"}),
    Way("context_span", {"method": "context_span"}, hidden=True),  # last: launches after it take longer
)


def run(record: PartRecord, deadline: Deadline) -> None:
    from fairlap.engine import floor

    def the_floor() -> None:
        for device in floor()["cuda"] or ():
            for figure, value in device.items():
                if figure.endswith("_ns") or figure in ("gate", "driver_cuda", "l2_bytes"):
                    record.row("floor", device=device["device"], figure=figure, value=value)

    record.take([Step("floor", 5, the_floor)], deadline)
    context = PrimaryContext()
    bench = _Bench(context, Spinner(), context.new_stream(), record)
    *others, in_one, by_records, by_context = WAYS
    steps = [Step(f"truth by {way.name}", 8, _with(bench.truth, way)) for way in (*others, in_one)]
    steps += [Step("100 ns in 2 us, many in one interval", 6, _with(bench.difference, in_one))]
    steps += [Step(f"truth by {by_records.name}", 8, _with(bench.truth, by_records))]
    steps += [Step("100 ns in 2 us, records", 6, _with(bench.difference, by_records))]
    steps += [Step(f"truth by {by_context.name}", 8, _with(bench.truth, by_context))]
    record.take([*steps, Step("goals", 0, bench.goals)], deadline)
    context.synchronize()


def _with(act: Callable[[Way], None], way: Way) -> Callable[[], None]:
    return lambda: act(way)


class _Bench:
    def __init__(self, context: PrimaryContext, spinner: Spinner, stream: int, record: PartRecord) -> None:
        self._context = context
        self._spinner = spinner
        self._stream = stream
        self._record = record

    def truth(self, way: Way) -> None:
        longest_ns = LONGEST_IN_ONE_INTERVAL_NS if way.calls > 1 else max(LENGTHS_NS)
        turns = [{length_ns: self._spun(way, length_ns) for length_ns in (0, *LENGTHS_NS) if length_ns <= longest_ns}]
        turns += [{length_ns: self._spun(way, length_ns) for length_ns in turns[0]} for _ in range(TURNS - 1)]
        for length_ns in LENGTHS_NS:
            if length_ns not in turns[0]:
                continue
            read = [turn[length_ns] for turn in turns]
            over_floor_ns = [turn[length_ns].error_ns - turn[0].error_ns for turn in turns]
            self._record.row(
                "truth",
                method=way.name,
                asked_ns=length_ns,
                truth_ns=median(each.truth_ns for each in read),
                read_ns=median(each.read_ns for each in read),
                error_ns=median(each.error_ns for each in read),
                floor_ns=median(turn[0].error_ns for turn in turns),
                error_over_floor_ns=median(over_floor_ns),
                least_over_floor_ns=min(over_floor_ns),
                most_over_floor_ns=max(over_floor_ns),
                samples=sum(each.result.samples for each in read),
                invalid=sum(sum(each.result.invalid.values()) for each in read),
                host_ns_per_sample=median(each.result.elapsed_s * 1e9 / max(1, each.result.samples) for each in read),
                gate=read[0].result.settings.get("gate", ""),
            )

    def difference(self, way: Way) -> None:
        """Time two kernels of about 2 us in turns, one of them 100 ns longer by the device's timer."""
        first = self._spinner.cycles_per_ns(self._stream)
        short, longer = round(2_000 * first), round(2_100 * first)
        found = []
        for _ in range(DIFFERENCE_ROUNDS):
            read = [self._cycles_ns(way, cycles, 300) for cycles in (short, longer)]
            found.append(read[1] - read[0])
            # The clock may fall while the device has little to do, and the kernels then take longer than was asked.
            cycles_per_ns = self._cycles_per_ns(way, LITTLE_WORK_CYCLES)
            self._record.row(
                "100 ns in 2 us",
                method=way.name,
                short_ns=read[0],
                longer_ns=read[1],
                found_ns=found[-1],
                expected_ns=(longer - short) / cycles_per_ns,
                clock_mhz=cycles_per_ns * 1e3,
            )
        right = sum(each > 0 for each in found)
        self._record.goal(
            f"{way.name}: 100 ns in 2 us found with the right sign, of {DIFFERENCE_ROUNDS}",
            "all",
            right,
            "",
            reached=right == len(found),
            why=f"median difference {median(found):.0f} ns",
        )

    def goals(self) -> None:
        rows = self._record.rows("truth")
        single = [row for row in rows if row["method"] == WAYS[0].name and row["asked_ns"] >= ABOVE_NS]
        records = [row for row in rows if row["method"] == "kernel_sum"]
        for label, found in (
            ("kernel_sum: largest error over its floor", records),
            ("gated device_span: largest error over its floor, from 5 us", single),
        ):
            over = [
                abs(row["error_over_floor_ns"]) - MOST_OF_LENGTH * row["truth_ns"]
                for row in found
                if row["error_over_floor_ns"] is not None
            ]
            self._at_most(f"{label}, less 0.1 % of the length", max(over, default=None), MOST_OVER_FLOOR_NS)
        for method, most_ns in MOST_FLOOR_NS.items():
            floor_ns = next((row["floor_ns"] for row in rows if row["method"] == method), None)
            self._at_most(f"{method}: its floor", floor_ns, most_ns)

    def _at_most(self, label: str, figure: float | None, most_ns: float) -> None:
        self._record.goal(
            label,
            f"<= {most_ns} ns",
            figure,
            "ns",
            reached=None if figure is None else figure <= most_ns,
            why="not measured; see the skipped steps" if figure is None else "",
        )

    def _spun(self, way: Way, length_ns: int) -> Spun:
        """Measure the clock before and after, since it may change with the load."""
        wanted = round(SECONDS_FOR_ONE * 1e9 / (length_ns * way.calls + 20_000))
        before = self._spinner.cycles_per_ns(self._stream)
        cycles = round(length_ns * before)
        self._spinner.lengths_cycles()
        result = self._timed(
            way,
            lambda: self._spinner.spin_cycles(self._stream, cycles),
            min(MOST_SAMPLES, max(LEAST_SAMPLES, wanted)),
        )
        self._context.synchronize()
        lengths = self._spinner.lengths_cycles()
        cycles_per_ns = (before + self._spinner.cycles_per_ns(self._stream)) / 2
        return Spun(result.median_ns, float(median(lengths)) / cycles_per_ns, result)

    def _timed(self, way: Way, work: Callable[[], None], samples: int) -> Any:
        from fairlap.engine.cuda.stream_calls import time_on_stream
        from fairlap.errors import NotAvailable

        stream: object = "hidden" if way.hidden else self._stream
        try:
            return time_on_stream(
                work, stream=stream, samples=samples, warmup=10, calls_per_sample=way.calls, **way.options
            )
        except NotAvailable as absent:
            raise NotHere(str(absent)) from None

    def _cycles_per_ns(self, way: Way, few: int) -> float:
        """Return the rate from the difference of two long spins, which contains neither start nor end."""
        return 2 * few / (self._cycles_ns(way, 3 * few, 10) - self._cycles_ns(way, few, 10))

    def _cycles_ns(self, way: Way, cycles: int, samples: int) -> float:
        timed = self._timed(way, lambda: self._spinner.spin_cycles(self._stream, cycles), samples)
        return float(timed.median_ns)
