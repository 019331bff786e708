"""
fairlap's engine. Use it through fairlap.engine.
"""
from __future__ import annotations
import collections.abc
import enum
import typing
import typing_extensions
__all__: list[str] = ['ActivityKind', 'AnswerStamps', 'BadFeed', 'BadStream', 'Batch', 'BatchFailed', 'BatchReleased', 'CaptureFailed', 'Clock', 'ClockCheck', 'ClockSourceUnavailable', 'ColdCache', 'CopyTimes', 'CopyTrials', 'CopyWay', 'CudaError', 'CudaUnavailable', 'DeviceCopies', 'DeviceFacts', 'DevicePages', 'DeviceRoofTrials', 'DeviceWait', 'FLOAT_REGISTERS', 'FeedSource', 'Feeder', 'FeederStopped', 'ForkedSampler', 'Gate', 'Groups', 'Guard', 'INTEGER_REGISTERS', 'Interval', 'Invalid', 'KnownService', 'KnownServiceBy', 'Lane', 'LastBatch', 'Layout', 'LinkFailed', 'LoadEnd', 'LoadRecord', 'LoadedKernel', 'LoopRecord', 'MeasurementInProgress', 'Method', 'NativeCall', 'OpenedPages', 'OwnStream', 'PythonAnswer', 'PythonCall', 'PythonService', 'ReadingState', 'Readings', 'RecordedCall', 'RoofEstimate', 'RoofTrials', 'Sampler', 'SamplerRuns', 'Samples', 'StallTimes', 'StopReason', 'StreamQuantity', 'StreamRecord', 'TelemetryField', 'TelemetrySource', 'TurnsRecord', 'WarmUpKind', 'address_of_c_call', 'arithmetic_instructions', 'arithmetic_trials', 'buffer_classes', 'capsule_function', 'clock', 'copy_trials', 'cuda_absent_because', 'cuda_device_code', 'cuda_device_facts', 'cuda_device_identities', 'cuda_devices', 'cuda_driver_version', 'device_arithmetic_ptx', 'device_arithmetic_trials', 'device_free_bytes', 'device_roof_kernels', 'device_triad_code', 'device_triad_trials', 'feed_from_memory', 'feed_from_raw', 'has_device_arithmetic', 'interval_of_median', 'is_device_arithmetic_unproven', 'kernel_clock_source', 'launches_during', 'peer_copy_trials', 'quantiles', 'recorded_calls', 'roof_of', 'run_load', 'stream_cache_bytes', 'time_calls', 'time_in_turns', 'time_on_stream', 'triad_trials', 'under_hypervisor']
class ClockSourceUnavailable(RuntimeError):
    pass
class ClockCheck:
    """
    The clock compared with the operating system's over a stretch of use.
    """
    @property
    def drift_ppm(self) -> float:
        ...
    @property
    def elapsed_s(self) -> float:
        ...
    @property
    def resolution_ppm(self) -> float:
        ...
class Clock:
    """
    A calibrated clock with a known floor.
    """
    def check_drift(self) -> ClockCheck:
        ...
    @property
    def bias_ns(self) -> float:
        ...
    @property
    def calibration_uncertainty_ppm(self) -> float:
        ...
    @property
    def counter_distrust(self) -> str:
        ...
    @property
    def ns_per_tick(self) -> float:
        ...
    @property
    def overhead_ns(self) -> float:
        ...
    @property
    def quantum_ns(self) -> float:
        ...
    @property
    def source(self) -> str:
        ...
    @property
    def trusted(self) -> bool:
        ...
class MeasurementInProgress(RuntimeError):
    pass
class StopReason(enum.Enum):
    """
    Why a run ended.
    """
    cuda_error = 8
    full = 3
    gate = 7
    interrupt = 4
    raised = 5
    samples = 0
    seconds = 1
    target = 2
    timeout = 6
class WarmUpKind(enum.Enum):
    """
    How a run is warmed up.
    """
    calls = 1
    found = 2
    none = 0
class PythonCall:
    """
    Python callables that take turns, with their arguments bound, ready to be timed.
    """
    def __init__(self, calls: collections.abc.Sequence[tuple[typing.Any, tuple[typing.Any, ...], dict[str, typing.Any]]], completion: typing.Any, drawn_call: typing.Any = None, look: typing.Any = None, preparation: typing.Any = None) -> None:
        ...
class NativeCall:
    """
    A C function, void f(void* context), ready to be timed.
    """
    def __init__(self, function: typing.SupportsInt | typing.SupportsIndex, contexts: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = [0], completion: typing.SupportsInt | typing.SupportsIndex = 0, completion_context: typing.SupportsInt | typing.SupportsIndex = 0, drawn_context: typing.Any = None, look: typing.Any = None) -> None:
        ...
class Samples:
    """
    float64 nanoseconds, read-only, in order of time; an invalid sample is NaN.
    """
    def __buffer__(self, flags: int, /) -> memoryview:
        ...
    def __len__(self) -> int:
        ...
class Groups:
    """
    What happened while the samples were taken, in groups of neighbouring samples.
    """
    def __buffer__(self, flags: int, /) -> memoryview:
        ...
    def __len__(self) -> int:
        ...
    def totals(self) -> dict[str, int]:
        ...
class LoopRecord:
    """
    The result of one run of the measured loop.
    """
    @property
    def backward_samples(self) -> int:
        ...
    @property
    def calls_per_sample(self) -> int:
        ...
    @property
    def clock_check(self) -> ClockCheck:
        ...
    @property
    def clock_source_changed(self) -> bool:
        ...
    @property
    def collector_came_back(self) -> bool:
        ...
    @property
    def correction_ns(self) -> float:
        ...
    @property
    def elapsed_ns(self) -> float:
        ...
    @property
    def exception(self) -> typing.Any:
        ...
    @property
    def first_call_ns(self) -> float:
        ...
    @property
    def groups(self) -> Groups:
        ...
    @property
    def host_issue_ns(self) -> Samples:
        ...
    @property
    def samples(self) -> int:
        ...
    @property
    def stolen_ns(self) -> int:
        ...
    @property
    def stopped_by(self) -> StopReason:
        ...
    @property
    def wall_ns(self) -> Samples:
        ...
    @property
    def warm_up_calls(self) -> int:
        ...
    @property
    def warm_up_elapsed_ns(self) -> float:
        ...
    @property
    def warm_up_kind(self) -> WarmUpKind:
        ...
    @property
    def warm_up_settled(self) -> bool:
        ...
class TurnsRecord:
    """
    The samples of callables that took turns.
    """
    @property
    def elapsed_ns(self) -> float:
        ...
    @property
    def exception(self) -> typing.Any:
        ...
    @property
    def last(self) -> int:
        ...
    @property
    def stopped_by(self) -> StopReason:
        ...
    @property
    def wall_ns(self) -> Samples:
        ...
class Interval:
    """
    A median and where it may lie.
    """
    @property
    def coverage(self) -> float:
        ...
    @property
    def high(self) -> float:
        ...
    @property
    def low(self) -> float:
        ...
    @property
    def median(self) -> float:
        ...
class CudaError(RuntimeError):
    pass
class CudaUnavailable(RuntimeError):
    pass
class BadStream(ValueError):
    pass
class CaptureFailed(RuntimeError):
    pass
class Method(enum.Enum):
    """
    How the device's time is taken.
    """
    context_span = 1
    device_span = 0
    host_issue = 3
    kernel_sum = 2
class Gate(enum.Enum):
    """
    How a stream is held while a sample is enqueued.
    """
    none = 0
    spin = 2
    stream_wait = 1
class Guard(enum.Enum):
    """
    How work that outlives the stop event is found.
    """
    context_event = 1
    context_sync = 2
    none = 0
class ActivityKind(enum.Enum):
    """
    What the device did.
    """
    copy = 1
    fill = 2
    kernel = 0
class StreamQuantity(enum.Enum):
    """
    What is known of each sample on a stream.
    """
    busy_ns = 4
    context_span_ns = 2
    copy_sum_ns = 6
    device_span_ns = 1
    gap_ns = 5
    host_issue_ns = 0
    kernel_sum_ns = 3
class Invalid(enum.Enum):
    """
    Why a sample is not a number.
    """
    calls_were_reduced = 5
    gate_timed_out = 0
    hidden_work = 1
    no_activity = 3
    records_dropped = 2
    span_backwards = 4
class StreamRecord:
    """
    The result of one run on a stream.
    """
    @property
    def between_samples(self) -> int:
        ...
    @property
    def cache_bytes(self) -> int:
        ...
    @property
    def calls_per_sample(self) -> int:
        ...
    @property
    def columns(self) -> dict[StreamQuantity, Samples]:
        ...
    @property
    def cupti_path(self) -> str:
        ...
    @property
    def cupti_version(self) -> int:
        ...
    @property
    def cupti_was_used(self) -> bool:
        ...
    @property
    def device(self) -> int:
        ...
    @property
    def elapsed_ns(self) -> float:
        ...
    @property
    def error(self) -> str:
        ...
    @property
    def exception(self) -> typing.Any:
        ...
    @property
    def first_call_ns(self) -> float:
        ...
    @property
    def floor(self) -> dict[str, float]:
        ...
    @property
    def flush_bytes(self) -> int:
        ...
    @property
    def gate(self) -> Gate:
        ...
    @property
    def gate_because(self) -> str:
        ...
    @property
    def graph_nodes(self) -> int:
        ...
    @property
    def guard(self) -> Guard:
        ...
    @property
    def guard_allowed_ns(self) -> float:
        ...
    @property
    def halvings(self) -> int:
        ...
    @property
    def invalid(self) -> dict[Invalid, int]:
        ...
    @property
    def kernels(self) -> dict[str, tuple[int, float]]:
        ...
    @property
    def kernels_absent_because(self) -> str:
        ...
    @property
    def last_sample(self) -> list[tuple[ActivityKind, str, int, int, int]]:
        ...
    @property
    def longest_tail_ns(self) -> float:
        ...
    @property
    def lost_records(self) -> int:
        ...
    @property
    def persisting_lines_reset(self) -> bool:
        ...
    @property
    def samples(self) -> int:
        ...
    @property
    def slots(self) -> int:
        ...
    @property
    def started_ns(self) -> Samples:
        """
        When the host began each sample, on the engine's clock since its calibration.
        """
    @property
    def stopped_by(self) -> StopReason:
        ...
    @property
    def stream(self) -> str:
        ...
    @property
    def streams(self) -> dict[int, tuple[int, float]]:
        ...
    @property
    def trace_stream(self) -> int | None:
        ...
    @property
    def valid(self) -> int:
        ...
    @property
    def warm_up_calls(self) -> int:
        ...
    @property
    def warm_up_elapsed_ns(self) -> float:
        ...
    @property
    def warm_up_settled(self) -> bool:
        ...
class DeviceWait:
    """
    Waits until a device has done all of its work.
    """
    def __call__(self, result: typing.Any = None) -> None:
        ...
    def __init__(self, device: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def device(self) -> int:
        ...
class ColdCache:
    """
    Makes the L2 cache of an idle device cold.
    """
    def __call__(self) -> None:
        ...
    def __init__(self, device: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def cache_bytes(self) -> int:
        ...
    @property
    def flush_bytes(self) -> int:
        ...
    @property
    def resets_persisting(self) -> bool:
        ...
class OwnStream:
    """
    A stream in the primary context of a device.
    """
    def __cuda_stream__(self) -> tuple[int, int]:
        ...
    def __init__(self, device: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def address(self) -> int:
        ...
class LoadedKernel:
    """
    A kernel of a PTX or cubin image.
    """
    def __init__(self, stream: OwnStream, image: bytes, name: str, *, grid: typing.Annotated[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], "FixedSize(3)"], block: typing.Annotated[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], "FixedSize(3)"], shared_bytes: typing.SupportsInt | typing.SupportsIndex, arguments: list[typing.Any]) -> None:
        ...
    def enter(self) -> None:
        """
        Make its context current on this thread.
        """
    def leave(self) -> None:
        ...
    @property
    def context(self) -> int:
        ...
    @property
    def launch_address(self) -> int:
        ...
    @property
    def wait_address(self) -> int:
        ...
class RecordedCall:
    """
    What a device did during one call.
    """
    @property
    def activities(self) -> list[tuple[str, int, int, int]]:
        """
        Name, stream, start and length of each, by start.
        """
    @property
    def begin_ns(self) -> int:
        ...
    @property
    def end_ns(self) -> int:
        ...
    @property
    def is_complete(self) -> bool:
        ...
class DeviceFacts:
    """
    What the driver knows of a device that need not be in use.
    """
    @property
    def cache_bytes(self) -> int:
        """
        of its L2 cache
        """
    @property
    def capability(self) -> int:
        """
        10 * major + minor
        """
    @property
    def driver_cuda_version(self) -> int:
        ...
    @property
    def multiprocessors(self) -> int:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def pci_bus_id(self) -> str:
        ...
    @property
    def uuid(self) -> str:
        ...
class DeviceRoofTrials:
    """
    Trials of the fastest kernel on a whole device.
    """
    def rates(self, seconds: typing.SupportsFloat | typing.SupportsIndex) -> list[float]:
        """
        The operations or bytes per second of each trial.
        """
    @property
    def instructions(self) -> str:
        ...
class CopyWay(enum.Enum):
    """
    Which way copies go between a device and its host.
    """
    both = 2
    from_device = 1
    to_device = 0
class CopyTrials:
    """
    Trials of copies between two memories.
    """
    def rates(self, seconds: typing.SupportsFloat | typing.SupportsIndex) -> list[float]:
        """
        The bytes per second of each trial, of both directions together where there are two.
        """
    @property
    def is_direct(self) -> bool:
        """
        Whether two devices read each other's memory; else it goes through the host's.
        """
class DeviceCopies:
    """
    Copies of a device's memory, each of which has ended when it returns.
    """
    def __init__(self, device: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def download(self, to: typing_extensions.Buffer, from_: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def fill(self, to: typing.SupportsInt | typing.SupportsIndex, word: typing.SupportsInt | typing.SupportsIndex, words: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def longest_pause_ns(self, ns: typing.SupportsInt | typing.SupportsIndex) -> int:
        """
        How long a kernel of this process was paused at most, while it looked for so long.
        """
    def require_sharing(self) -> None:
        """
        Raise CudaUnavailable where two processes share no memory of the device.
        """
    def upload(self, to: typing.SupportsInt | typing.SupportsIndex, from_: typing_extensions.Buffer) -> None:
        ...
    def within(self, to: typing.SupportsInt | typing.SupportsIndex, from_: typing.SupportsInt | typing.SupportsIndex, nbytes: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
class DevicePages:
    """
    Whole blocks of a device's memory.
    """
    def __init__(self, copies: DeviceCopies, nbytes: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    def exported(self) -> bytes:
        """
        The handle by which other processes open it.
        """
    @property
    def address(self) -> int:
        ...
    @property
    def nbytes(self) -> int:
        ...
class OpenedPages:
    """
    Memory of a device that another process exported.
    """
    def __init__(self, copies: DeviceCopies, handle: bytes) -> None:
        ...
    @property
    def address(self) -> int:
        ...
class ForkedSampler(RuntimeError):
    pass
class SamplerRuns(RuntimeError):
    pass
class Lane(enum.Enum):
    """
    How often a field is read.
    """
    fast = 0
    rare = 2
    slow = 1
class ReadingState(enum.IntEnum):
    """
    What a reading holds.
    """
    failed = 1
    reading = 0
    source_lost = 2
class TelemetryField:
    """
    One number of a source; its name ends in its unit.
    """
    @property
    def absent_because(self) -> str:
        ...
    @property
    def counter(self) -> bool:
        ...
    @property
    def lane(self) -> Lane:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def wraps_at(self) -> float:
        ...
class TelemetrySource:
    """
    Something that is read, or the reason why it is absent.
    """
    @property
    def absent_because(self) -> str:
        ...
    @property
    def fields(self) -> list[TelemetryField]:
        ...
    @property
    def name(self) -> str:
        ...
class Readings:
    """
    What a sampler read, in order of time.
    """
    def __buffer__(self, flags: int, /) -> memoryview:
        ...
    def __len__(self) -> int:
        ...
class Sampler:
    """
    Reads this machine's sensors on a native thread.
    """
    def __init__(self, clock: Clock, *, fast_period_s: typing.SupportsFloat | typing.SupportsIndex, slow_period_s: typing.SupportsFloat | typing.SupportsIndex, rare_period_s: typing.SupportsFloat | typing.SupportsIndex, most_call_share: typing.SupportsFloat | typing.SupportsIndex, jitter_share: typing.SupportsFloat | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex, readings: typing.SupportsInt | typing.SupportsIndex, marks: typing.SupportsInt | typing.SupportsIndex, root: str, nvml_library: str) -> None:
        ...
    def collect(self) -> Readings:
        ...
    def collect_marks(self) -> list[tuple[int, int]]:
        ...
    def counts(self) -> dict[str, int]:
        ...
    def mark(self, label: typing.SupportsInt | typing.SupportsIndex) -> int:
        ...
    def read_each_alone(self, seconds: typing.SupportsFloat | typing.SupportsIndex) -> Readings:
        ...
    def set_fast_period(self, seconds: typing.SupportsFloat | typing.SupportsIndex) -> None:
        ...
    def start(self) -> None:
        ...
    def stop(self) -> None:
        ...
    def text_of(self, source: typing.SupportsInt | typing.SupportsIndex, code: typing.SupportsInt | typing.SupportsIndex) -> str:
        ...
    @property
    def period_s(self) -> float:
        ...
    @property
    def running(self) -> bool:
        ...
    @property
    def sources(self) -> list[TelemetrySource]:
        ...
class BadFeed(ValueError):
    pass
class BatchReleased(RuntimeError):
    pass
class BatchFailed(RuntimeError):
    pass
class FeederStopped(RuntimeError):
    pass
class LinkFailed(RuntimeError):
    pass
class LastBatch(enum.Enum):
    """
    What happens to samples that do not fill the last batch of an epoch.
    """
    drop = 1
    keep = 0
    wrap = 2
class Layout(enum.Enum):
    """
    How the axes of a sample are reordered.
    """
    as_is = 0
    nchw_to_nhwc = 2
    nhwc_to_nchw = 1
class FeedSource:
    """
    Where samples come from, until a feeder takes it.
    """
    @property
    def samples(self) -> int:
        ...
class StallTimes:
    """
    Where the consumer's time went. The parts add up to wall_ns; a wait has one of four causes.
    """
    @property
    def batches(self) -> int:
        ...
    @property
    def bytes(self) -> int:
        ...
    @property
    def consumer_ns(self) -> int:
        """
        The consumer was at its own work.
        """
    @property
    def link_ns(self) -> int | None:
        """
        Waited while a copy to the device held up a slot; None where batches stay in host memory.
        """
    @property
    def no_slot_ns(self) -> int:
        """
        Waited since the consumer, or its work on the device, held every slot.
        """
    @property
    def samples(self) -> int:
        ...
    @property
    def source_ns(self) -> int:
        """
        Waited while samples were read.
        """
    @property
    def staging_ns(self) -> int:
        """
        Waited while samples were copied and converted.
        """
    @property
    def wall_ns(self) -> int:
        ...
class CopyTimes:
    """
    How long timed copies to a device took, and how much of that was behind work on other batches.
    """
    @property
    def copied_ns(self) -> float:
        ...
    @property
    def copies(self) -> int:
        ...
    @property
    def hidden_ns(self) -> float:
        """
        Behind work: from when the consumer's stream has a batch until it gets to its release.
        """
    @property
    def lost(self) -> int:
        """
        Copies left out, since a batch was held while many others passed or an event failed.
        """
    @property
    def without_stream(self) -> int:
        """
        Copies left out, since not one stream was named for all of the work on the batch.
        """
class Batch:
    """
    A batch in host memory or on a device. It goes back to the feeder when it is released or forgotten, and every tensor made from it is gone.
    """
    def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex] | None = None, dl_device: tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex] | None = None, copy: bool | None = None) -> typing_extensions.CapsuleType:
        ...
    def __dlpack_device__(self) -> tuple[int, int]:
        ...
    def release(self, streams: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = []) -> None:
        """
        Give the slot back. It is filled again once every tensor made from the batch is gone, too. On a device, give the addresses of streams that used it and that DLPack does not know of.
        """
    def wait(self) -> None:
        """
        Wait until the batch is on its device, for consumers that know no streams. On the CPU it is there.
        """
    @property
    def dtype(self) -> str:
        ...
    @property
    def nbytes(self) -> int:
        ...
    @property
    def number(self) -> int:
        ...
    @property
    def pointer(self) -> int:
        """
        The address of the first element, valid until release(); nothing holds the slot for it.
        """
    @property
    def released(self) -> bool:
        ...
    @property
    def samples(self) -> int:
        ...
    @property
    def shape(self) -> tuple[int, ...]:
        ...
class Feeder:
    """
    Threads that fill slots with batches ahead of the consumer.
    """
    def __init__(self, source: FeedSource, *, batch: typing.SupportsInt | typing.SupportsIndex, slots: typing.SupportsInt | typing.SupportsIndex, threads: typing.SupportsInt | typing.SupportsIndex, seed: typing.SupportsInt | typing.SupportsIndex | None, epochs: typing.SupportsInt | typing.SupportsIndex, last: LastBatch, type: str | None, scale: typing.SupportsFloat | typing.SupportsIndex, offset: typing.SupportsFloat | typing.SupportsIndex, layout: Layout, cuda_device: typing.SupportsInt | typing.SupportsIndex | None) -> None:
        ...
    def close(self) -> list[int]:
        """
        End the threads; returns the numbers of the batches that are still held.
        """
    def next(self, patience_s: typing.SupportsFloat | typing.SupportsIndex) -> Batch | None:
        """
        The next batch, or None at the end.
        """
    def time_copies(self, on: bool) -> None:
        """
        Time copies and the work on batches, or end that. In host memory there are none.
        """
    @property
    def batches(self) -> int:
        ...
    @property
    def copy_times(self) -> CopyTimes | None:
        """
        Of the copies that were timed; None where none ever were.
        """
    @property
    def host_node(self) -> int | None:
        """
        The memory node that the pinned slots were put on, which is the device's; None where it is not known.
        """
    @property
    def stalls(self) -> StallTimes:
        ...
class AnswerStamps:
    """
    When each token of answers came.
    """
    def __init__(self, tokens: typing.SupportsInt | typing.SupportsIndex, most_answers: typing.SupportsInt | typing.SupportsIndex, clock: Clock) -> None:
        ...
    def newest(self, count: typing.SupportsInt | typing.SupportsIndex) -> Samples:
        """
        Of the newest complete answers, the oldest first: the thread, the clock when it began, and for each token ns since the answer began.
        """
    def record(self, on: bool) -> None:
        """
        Whether answers from now on are recorded.
        """
    @property
    def width(self) -> int:
        ...
class PythonAnswer:
    """
    A callable for one whole answer.
    """
    def __call__(self) -> tuple[list[typing.Any], list[typing.Any]]:
        ...
    def __init__(self, first: typing.Any, next: typing.Any, prompt: typing.Any, tokens: collections.abc.Sequence[typing.Any], items: typing.SupportsInt | typing.SupportsIndex, stamps: AnswerStamps) -> None:
        ...
class LoadEnd(enum.Enum):
    """
    Why a load ended.
    """
    completed = 1
    gave_up = 6
    interrupted = 5
    met = 2
    missed = 3
    raised = 4
    running = 0
class KnownServiceBy(enum.Enum):
    """
    How a known service passes its time.
    """
    sleeping = 1
    spinning = 0
class PythonService:
    """
    Python callables that answer requests, one for each item.
    """
    def __init__(self, calls: collections.abc.Sequence[typing.Any], batch_call: typing.Any, done: typing.Any) -> None:
        ...
class KnownService:
    """
    Takes as long as was given for each request.
    """
    def __init__(self, length_ns: typing_extensions.Buffer, by: KnownServiceBy, clock: Clock) -> None:
        ...
class LoadRecord:
    """
    How a load ended.
    """
    @property
    def collector_came_back(self) -> bool:
        ...
    @property
    def elapsed_ns(self) -> float:
        ...
    @property
    def end(self) -> LoadEnd:
        ...
    @property
    def exception(self) -> typing.Any:
        ...
    @property
    def left_in_call(self) -> int:
        ...
class RoofEstimate:
    """
    A limit of the machine, per second, with its interval.
    """
    @property
    def high(self) -> float:
        ...
    @property
    def low(self) -> float:
        ...
    @property
    def value(self) -> float:
        ...
class RoofTrials:
    """
    Short trials of the fastest kernel on all threads at once.
    """
    def rates(self, seconds: typing.SupportsFloat | typing.SupportsIndex) -> list[float]:
        """
        The operations or bytes per second of each trial.
        """
    @property
    def instructions(self) -> str:
        ...
def address_of_c_call(*, returns_float: bool) -> int:
    """
    Of a native function that calls a C function with its arguments; see loop/c_call.hpp.
    """
def arithmetic_instructions(number_type: str) -> list[str]:
    """
    What this processor has for a number type, from the narrowest.
    """
def arithmetic_trials(number_types: collections.abc.Sequence[str], threads: typing.SupportsInt | typing.SupportsIndex, cores: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> RoofTrials:
    """
    Of the fastest kernel of any of these number types.
    """
def buffer_classes() -> list[str]:
    ...
def capsule_function(capsule: typing_extensions.CapsuleType) -> tuple[int, int, str]:
    ...
def clock(source: str = 'auto') -> Clock:
    ...
def copy_trials(stream: OwnStream, way: CopyWay) -> CopyTrials:
    ...
def cuda_absent_because() -> str:
    """
    Why there is no CUDA here; empty when there is.
    """
def cuda_device_code() -> str:
    """
    The embedded device code, for tests that need work of known length.
    """
def cuda_device_facts(device: typing.SupportsInt | typing.SupportsIndex) -> DeviceFacts:
    """
    Starts the driver and no device.
    """
def cuda_device_identities() -> list[tuple[str, str]]:
    """
    The PCI address and the UUID of each device, in CUDA's order. Starts the driver and no device.
    """
def cuda_devices(clock: Clock) -> list[dict[str, typing.Any]]:
    ...
def cuda_driver_version() -> int:
    """
    The newest CUDA release the driver knows, 1000 * major + 10 * minor.
    """
def device_arithmetic_ptx(number_type: str, capability: typing.SupportsInt | typing.SupportsIndex) -> str:
    """
    The version of PTX that all its kernels need; empty where there are none.
    """
def device_arithmetic_trials(stream: OwnStream, number_type: str, capability: typing.SupportsInt | typing.SupportsIndex) -> DeviceRoofTrials:
    ...
def device_free_bytes(stream: OwnStream) -> int:
    """
    Of its device's memory.
    """
def device_roof_kernels() -> list[tuple[str, str, int, int, float, int, str, str, int]]:
    """
    Every kernel for arithmetic, for tests: number type, instructions, capabilities from and to, operations of a round of a block, its threads, device code, that of its check, sums of a thread.
    """
def device_triad_code() -> str:
    """
    For tests.
    """
def device_triad_trials(stream: OwnStream, bytes: typing.SupportsInt | typing.SupportsIndex) -> DeviceRoofTrials:
    ...
def feed_from_memory(pointer: typing.SupportsInt | typing.SupportsIndex, type: str, sample_shape: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], samples: typing.SupportsInt | typing.SupportsIndex, owner: typing.Any) -> FeedSource:
    ...
def feed_from_raw(path: str, offset: typing.SupportsInt | typing.SupportsIndex, type: str, sample_shape: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], samples: typing.SupportsInt | typing.SupportsIndex) -> FeedSource:
    ...
def has_device_arithmetic(number_type: str, capability: typing.SupportsInt | typing.SupportsIndex) -> bool:
    ...
def interval_of_median(samples: typing_extensions.Buffer) -> Interval:
    ...
def is_device_arithmetic_unproven(number_type: str, capability: typing.SupportsInt | typing.SupportsIndex) -> bool:
    """
    Whether a kernel for it could break the context, so that another process should try it first.
    """
def kernel_clock_source() -> str:
    ...
def launches_during(call: collections.abc.Callable[[], typing.Any], *, device: typing.SupportsInt | typing.SupportsIndex, cupti_places: collections.abc.Sequence[str]) -> dict[int, int]:
    """
    How many kernels and graphs were launched on each stream during one call, by its address.
    """
def peer_copy_trials(source: OwnStream, target: OwnStream) -> CopyTrials:
    ...
def quantiles(samples: typing_extensions.Buffer, shares: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex]) -> list[float]:
    ...
def recorded_calls(call: collections.abc.Callable[[], typing.Any], *, calls: typing.SupportsInt | typing.SupportsIndex, device: typing.SupportsInt | typing.SupportsIndex, cupti_places: collections.abc.Sequence[str]) -> list[RecordedCall]:
    """
    The device's own records of each of so many calls. Holds CUPTI meanwhile.
    """
def roof_of(rates: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex]) -> RoofEstimate:
    """
    The upper quantile of the rates, with its interval.
    """
def run_load(workers: collections.abc.Sequence[typing.Any], clock: Clock, *, due_ns: typing_extensions.Buffer, items: typing.Any, issued_ns: typing_extensions.Buffer, started_ns: typing_extensions.Buffer, completed_ns: typing_extensions.Buffer, worker: typing_extensions.Buffer, group: typing_extensions.Buffer, largest_batch: typing.SupportsInt | typing.SupportsIndex, longest_wait_ns: typing.SupportsFloat | typing.SupportsIndex, bound_ns: typing.SupportsFloat | typing.SupportsIndex, missed_at: typing_extensions.Buffer, met_at: typing_extensions.Buffer, kept: typing_extensions.Buffer, look: typing.Any, give_up_ns: typing.SupportsFloat | typing.SupportsIndex, spin_ns: typing.SupportsFloat | typing.SupportsIndex, warm_up: bool, pause_collector: bool) -> LoadRecord:
    ...
def stream_cache_bytes(stream: typing.SupportsInt | typing.SupportsIndex | None, device: typing.SupportsInt | typing.SupportsIndex) -> int:
    """
    The L2 cache of the device that a stream is of; 0 where the driver does not report it.
    """
def time_calls(call: typing.Any, clock: Clock, *, samples: typing.SupportsInt | typing.SupportsIndex, seconds: typing.SupportsFloat | typing.SupportsIndex, target: typing.SupportsFloat | typing.SupportsIndex, calls_per_sample: typing.SupportsInt | typing.SupportsIndex, floor_multiple: typing.SupportsFloat | typing.SupportsIndex, warm_up: WarmUpKind, warm_up_calls: typing.SupportsInt | typing.SupportsIndex, warm_up_max_seconds: typing.SupportsFloat | typing.SupportsIndex, pause_collector: bool, drawn_at: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex] = []) -> LoopRecord:
    ...
def time_in_turns(calls: collections.abc.Sequence[typing.Any], clock: Clock, *, calls_per_sample: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], order: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex], drawn: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]], pause_collector: bool) -> TurnsRecord:
    ...
def time_on_stream(calls: list[typing.Any], stream: typing.SupportsInt | typing.SupportsIndex | None, device: typing.SupportsInt | typing.SupportsIndex, clock: Clock, *, method: Method, samples: typing.SupportsInt | typing.SupportsIndex, seconds: typing.SupportsFloat | typing.SupportsIndex, target: typing.SupportsFloat | typing.SupportsIndex, calls_per_sample: typing.SupportsInt | typing.SupportsIndex, quantum_share: typing.SupportsFloat | typing.SupportsIndex, warm_up: WarmUpKind, warm_up_calls: typing.SupportsInt | typing.SupportsIndex, flush: bool, gate: Gate | None, graph: bool, guard: bool, timeout_s: typing.SupportsFloat | typing.SupportsIndex, gate_timeout_s: typing.SupportsFloat | typing.SupportsIndex, cupti_places: collections.abc.Sequence[str], pause_collector: bool) -> StreamRecord:
    ...
def triad_trials(bytes_per_thread: typing.SupportsInt | typing.SupportsIndex, in_caches: bool, threads: typing.SupportsInt | typing.SupportsIndex, cores: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> RoofTrials:
    ...
def under_hypervisor() -> bool:
    ...
FLOAT_REGISTERS: int = 8
INTEGER_REGISTERS: int = 6
__version__: str = '0.1.0'
