"""The warnings about a run, from its record. Each rule is one small function."""

from __future__ import annotations

from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.engine import _native
from fairlap.engine.measurement import Notice

SAMPLES_FOR_AN_INTERVAL = 6

_ENDED_BY = {
    "samples": "it has all samples that were asked for",
    "seconds": "its time was over",
    "full": "there was no room for more samples",
    "timeout": "the device did not finish in time",
    "gate": "calls did not return while the stream was held",
    "cuda_error": "a call of CUDA failed",
}


def interrupted(stopped_by: str, samples: int) -> Notice | None:
    if stopped_by != "interrupt":
        return None
    return Notice(
        "W_INTERRUPTED", f"interrupted after {quantity_text.count(samples, 'sample')}, which {_are(samples)} kept"
    )


def few_samples(valid: int) -> Notice | None:
    if valid >= SAMPLES_FOR_AN_INTERVAL:
        return None
    if valid == 0:
        return Notice("W_FEW_SAMPLES", "no valid sample was taken, so there is no figure")
    return Notice(
        "W_FEW_SAMPLES",
        f"{quantity_text.count(valid, 'valid sample')} {_give(valid)} no 95 % interval; "
        f"take {SAMPLES_FOR_AN_INTERVAL} or more",
    )


def target_not_reached(target: float, stopped_by: str) -> Notice | None:
    if target == 0 or stopped_by in ("target", "interrupt", "raised"):
        return None
    return Notice(
        "W_TARGET_NOT_REACHED",
        f"the interval did not shrink to the target of {quantity_text.share(target)} before the run ended "
        f"({_ENDED_BY.get(stopped_by, stopped_by)})",
    )


def buffer_full(stopped_by: str, samples: int) -> Notice | None:
    if stopped_by != "full":
        return None
    return Notice(
        "W_BUFFER_FULL",
        f"all {samples:,} places for samples were used before the time was over; "
        "pass samples= or a larger calls_per_sample=",
    )


def warm_up_not_settled(kind: str, settled: bool, elapsed_s: float, samples: int) -> Notice | None:
    if kind != "found" or settled or samples == 0:
        return None
    return Notice(
        "W_WARM_UP_NOT_SETTLED",
        f"the warm-up had not settled after {elapsed_s:.2g} s, so the samples may still drift; "
        "pass a number of calls as warmup=",
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _give(count: int) -> str:
    return "gives" if count == 1 else "give"


# A drift that moves a result by less than this does not matter to a reader.
HARMFUL_DRIFT_PPM = 200.0
FAULTS_PER_CALL = 1.0
SHARE_STOLEN = 0.01
SAMPLES_FOR_A_GLANCE = 1000


@dataclass(frozen=True)
class _Run:
    record: _native.LoopRecord
    clock: _native.Clock
    python_threads: int
    totals: dict[str, int]

    @property
    def calls(self) -> int:
        return max(1, self.record.samples * self.record.calls_per_sample)


def notices_of_run(
    record: _native.LoopRecord, clock: _native.Clock, target: float, *, python_threads: int
) -> tuple[Notice, ...]:
    """All warnings about one run of the measured loop, the most serious first."""
    run = _Run(record, clock, python_threads, record.groups.totals())
    found = (
        _clock_went_backwards(run),
        _clock_source_changed(run),
        _clock_drifted(run),
        _clock_not_trusted(run),
        interrupted(record.stopped_by.name, record.samples),
        few_samples(record.samples),
        target_not_reached(target, record.stopped_by.name),
        buffer_full(record.stopped_by.name, record.samples),
        warm_up_not_settled(
            record.warm_up_kind.name, record.warm_up_settled, record.warm_up_elapsed_ns / 1e9, record.samples
        ),
        _collector_came_back(run),
        _near_the_floor(run),
        _page_faults(run),
        _major_faults(run),
        _stolen(run),
        _preempted(run),
        _migrated(run),
        _shared_interpreter(run),
    )
    return tuple(notice for notice in found if notice is not None)


def _clock_went_backwards(run: _Run) -> Notice | None:
    if run.record.backward_samples == 0:
        return None
    return Notice(
        "W_CLOCK_BACKWARDS",
        f"the clock went backwards in {run.record.backward_samples} samples, which are left out; "
        "use clock='monotonic_raw' on this machine",
    )


def _clock_source_changed(run: _Run) -> Notice | None:
    if not run.record.clock_source_changed:
        return None
    return Notice(
        "W_CLOCK_SOURCE_CHANGED",
        "the kernel changed its clock source during the run: the processor's counter is unstable, "
        "or the machine was moved. Measure again",
    )


def _clock_drifted(run: _Run) -> Notice | None:
    check = run.record.clock_check
    if abs(check.drift_ppm) <= HARMFUL_DRIFT_PPM + check.resolution_ppm:
        return None
    return Notice(
        "W_CLOCK_DRIFT",
        f"{run.clock.source} ran {check.drift_ppm:+.0f} ppm against the operating system's clock during the run; "
        "the machine may have been suspended or moved. Measure again, or use clock='monotonic_raw'",
    )


def _clock_not_trusted(run: _Run) -> Notice | None:
    if run.clock.trusted:
        return None
    return Notice("W_CLOCK_NOT_TRUSTED", f"{run.clock.source} was selected, but {run.clock.counter_distrust}")


def _collector_came_back(run: _Run) -> Notice | None:
    if not run.record.collector_came_back:
        return None
    return Notice(
        "W_COLLECTOR_CAME_BACK", "the callable enabled the garbage collector again; the samples include collections"
    )


def _near_the_floor(run: _Run) -> Notice | None:
    if run.record.samples == 0:
        return None
    some = memoryview(run.record.wall_ns)[:SAMPLES_FOR_A_GLANCE]
    median_ns = _native.quantiles(some, [0.5])[0] * run.record.calls_per_sample
    if median_ns >= 10 * run.clock.quantum_ns:
        return None
    return Notice(
        "W_NEAR_THE_FLOOR",
        f"a sample lasts {quantity_text.duration(max(median_ns, 0.0), run.clock.quantum_ns)}, less than ten steps of "
        f"the clock ({run.clock.quantum_ns:.3g} ns); leave calls_per_sample to fairlap or make it larger",
    )


def _page_faults(run: _Run) -> Notice | None:
    per_call = run.totals["process_minor_faults"] / run.calls
    if per_call < FAULTS_PER_CALL:
        return None
    return Notice(
        "W_PAGE_FAULTS",
        f"each call causes {quantity_text.count(round(per_call), 'page fault')}: memory is returned to the kernel "
        "and fetched again. Not every process is affected; set MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_",
    )


def _major_faults(run: _Run) -> Notice | None:
    faults = run.totals["process_major_faults"]
    if faults == 0:
        return None
    return Notice(
        "W_MAJOR_FAULTS",
        f"{quantity_text.count(faults, 'page fault')} waited for a disk, and the samples include that",
    )


def _stolen(run: _Run) -> Notice | None:
    if run.record.stolen_ns <= SHARE_STOLEN * run.record.elapsed_ns or run.record.elapsed_ns == 0:
        return None
    return Notice(
        "W_STOLEN",
        f"the hypervisor gave {quantity_text.share(run.record.stolen_ns / run.record.elapsed_ns)} of a core to others "
        "during the run",
    )


def _preempted(run: _Run) -> Notice | None:
    switches = run.totals["thread_involuntary_switches"]
    if switches <= max(5, 0.01 * run.record.samples):
        return None
    return Notice("W_PREEMPTED", f"the kernel preempted the thread {switches:,} times; other programs are running")


def _migrated(run: _Run) -> Notice | None:
    moves = run.totals["migrations"]
    if moves == 0:
        return None
    times = "once" if moves == 1 else f"{moves:,} times"
    return Notice("W_MIGRATED", f"the thread moved to another core {times}; pin it, for example with taskset -c 1")


def _shared_interpreter(run: _Run) -> Notice | None:
    if run.python_threads <= 1:
        return None
    return Notice(
        "W_PYTHON_THREADS", f"{run.python_threads} Python threads are alive and take turns with the timed callable"
    )
