"""Timing calls on the CPU's clock: the request checked, the native loop run, the record made readable.

A callable with its arguments and its completion, checked and made ready for the native loop.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairlap import quantity_text
from fairlap.engine import _native
from fairlap.engine.arguments import calls_per_sample_wish, given_name, stop_rule, truth, warm_up_wish
from fairlap.engine.clocks import clock_named
from fairlap.engine.measurement import CallableRaised, Measurement, Notice, WarmUp
from fairlap.engine.native_functions import NativeFunction, address_of_argument, native_function_of
from fairlap.engine.notices import notices_of_run
from fairlap.engine.quantity import Quantity
from fairlap.errors import NOT_ENOUGH_MEMORY, InvalidRequest, NotAvailable, described, shown


@dataclass(frozen=True)
class DrawnCalls:
    """Single calls at these shares of a run, ascending, timed like all others but not among its samples.

    ``callable(number)`` returns what is called without arguments, and ``look(number, result, wall_ns)`` receives what
    it returned. Both run between samples on the measuring thread, and their time is not part of the run's.
    """

    at: Sequence[float]
    callable: Callable[[int], Callable[[], object]]
    look: Callable[[int, Any, float], object]


def python_work(
    fn: object,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None,
    done: object,
    in_turn: Sequence[Callable[..., object]] = (),
    drawn: DrawnCalls | None = None,
    before_each: Callable[[], object] | None = None,
) -> _native.PythonCall:
    require_python_work(fn, done)
    if not isinstance(args, tuple):
        raise InvalidRequest(f"args must be a tuple, not {type(args).__name__}; write args=(x,) for one argument")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise InvalidRequest(f"kwargs must be a mapping, not {type(kwargs).__name__}")
    keywords = dict(kwargs or {})
    if not all(isinstance(key, str) for key in keywords):
        raise InvalidRequest("the names in kwargs must be strings")
    calls = [(each, args, keywords) for each in (fn, *in_turn)]
    if drawn is None:
        return _native.PythonCall(calls, done, preparation=before_each)
    callable_of = drawn.callable
    return _native.PythonCall(calls, done, lambda number: (callable_of(number), (), {}), drawn.look, before_each)


def require_python_work(fn: object, done: object) -> None:
    """Refuse what cannot be timed as a Python callable, or cannot wait for one."""
    if not callable(fn):
        raise InvalidRequest(f"the thing to time must be callable, not {shown(fn)}")
    require_body_runs(fn, done)
    if isinstance(done, NativeFunction):
        raise InvalidRequest("a native done goes with a native fn; give a Python callable that waits instead")
    if done is not None and not callable(done):
        raise InvalidRequest(f"done must be callable, not {shown(done)}")


def require_body_runs(fn: object, done: object) -> None:
    """Refuse an async function or a generator that nothing runs: its call makes something to run, in no time."""
    if done is None and _only_makes_something_to_run(fn):
        raise InvalidRequest(body_does_not_run(name_of(fn)))


def body_does_not_run(name: str) -> str:
    return (
        f"calling {name} runs none of its body, since it is async or a generator; wrap it in a function "
        "that runs it (lambda: runner.run(f()), of one asyncio.Runner), or give what runs it as done="
    )


def never_started(returned: object) -> bool:
    """Whether it is a coroutine or a generator of which nothing has run. It is closed, or Python would warn of it."""
    if inspect.iscoroutine(returned) and inspect.getcoroutinestate(returned) == inspect.CORO_CREATED:
        returned.close()
        return True
    if inspect.isgenerator(returned) and inspect.getgeneratorstate(returned) == inspect.GEN_CREATED:
        returned.close()
        return True
    return inspect.isasyncgen(returned)


def _only_makes_something_to_run(fn: object) -> bool:
    called = [fn, getattr(type(fn), "__call__", None)]  # noqa: B004  (it may be async)
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    try:
        return any(is_kind(each) for each in called for is_kind in kinds)
    except Exception:  # an object whose attributes raise is no function
        return False


def name_of(fn: object) -> str:
    """Name this callable for a reader, even where its attributes raise."""
    try:
        inner = getattr(fn, "func", fn)  # functools.partial
        return str(getattr(inner, "__qualname__", None) or type(inner).__qualname__)
    except Exception:
        return type(fn).__qualname__


def native_work(
    native: NativeFunction, args: tuple[object, ...], kwargs: Mapping[str, object] | None, done: object
) -> _native.NativeCall:
    context = native_context(native, args, kwargs)
    return _native.NativeCall(native.address, [context], *native_completion(native, done))


def native_context(native: NativeFunction, args: object, kwargs: Mapping[str, object] | None) -> int:
    """Find the address that a native function is called with."""
    if kwargs:
        raise InvalidRequest(f"{native.name} is timed natively and takes no keyword arguments")
    if not isinstance(args, tuple) or len(args) > 1:
        raise InvalidRequest(f"{native.name} is timed natively and takes one pointer or nothing; args={args!r}")
    return address_of_argument(args[0]) if args else native.context


def native_completion(native: NativeFunction, done: object) -> tuple[int, int]:
    """Find the address and the context of what waits for a native function; zeros for nothing."""
    if done is None:
        return 0, 0
    completion = native_function_of(done)
    if completion is None:
        raise InvalidRequest(
            f"{native.name} is timed natively, so done must be native too; wrap {native.name} in a lambda "
            "to combine it with a Python completion"
        )
    return completion.address, completion.context


ASLEEP = "fairlap-asleep"
"""The name of a thread of fairlap's that sleeps while calls are timed, and takes no turns with them."""

FLOOR_MULTIPLE = 50.0
LONGEST_WARM_UP_S = 2.0

_ABSENT_ON_CPU = {
    "device_span_ns": "no stream was given; pass stream= to time on a device",
    "kernel_sum_ns": "no stream was given; pass stream= and method='kernel_sum'",
}


def time_calls(
    fn: Callable[..., object] | NativeFunction | object,
    *,
    args: tuple[object, ...] = (),
    kwargs: Mapping[str, object] | None = None,
    done: Callable[[Any], object] | NativeFunction | object | None = None,
    samples: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    warmup: int | Literal["auto"] = "auto",
    calls_per_sample: int | Literal["auto"] = "auto",
    clock: str = "auto",
    pause_gc: bool = True,
    name: str | None = None,
    in_turn: Sequence[Callable[..., object]] = (),
    drawn: DrawnCalls | None = None,
    before_each: Callable[[], object] | None = None,
) -> Measurement:
    """Time calls of ``fn(*args, **kwargs)`` on the CPU's clock, every sample taken natively.

    ``done`` is called with what the last call of a sample returned, inside the timed interval, so that
    asynchronous work is charged to the one who launched it; ``host_issue_ns`` is then a quantity of its
    own. The run ends at ``samples``, after ``seconds``, or when the relative half-width of the median's
    interval reaches ``target``, whichever is first; one second by default.

    ``in_turn`` are further callables, which take turns with ``fn`` from call to call, with the same arguments.
    ``before_each`` is called before each sample, which then is one call, and its time does not count.
    """
    stop = stop_rule(samples, seconds, target)
    warm_up = warm_up_wish(warmup)
    calls = calls_per_sample_wish(calls_per_sample)
    pause_gc = truth("pause_gc", pause_gc)
    name = given_name(name)
    on_clock = clock_named(clock)
    native = native_function_of(fn)
    if native and (in_turn or drawn or before_each):
        raise InvalidRequest(f"{native.name} is timed natively, so no other callables can take turns with it")
    if before_each is not None and calls > 1:
        raise InvalidRequest("with before_each= a sample is one call; leave out calls_per_sample=")
    if native:
        work: _native.NativeCall | _native.PythonCall = native_work(native, args, kwargs, done)
    else:
        work = python_work(fn, args, kwargs, done, in_turn, drawn, before_each)
    is_one_call = before_each is not None or (calls == 0 and warm_up.kind == "none")
    try:
        record = _native.time_calls(
            work,
            on_clock,
            samples=stop.samples,
            seconds=stop.seconds,
            target=stop.target,
            calls_per_sample=1 if is_one_call else calls,
            floor_multiple=FLOOR_MULTIPLE,
            warm_up=_native.WarmUpKind[warm_up.kind],
            warm_up_calls=warm_up.calls,
            warm_up_max_seconds=LONGEST_WARM_UP_S,
            pause_collector=pause_gc,
            drawn_at=[] if drawn is None else list(drawn.at),
        )
    except MemoryError:
        raise NotAvailable(NOT_ENOUGH_MEMORY) from None
    notices = notices_of_run(record, on_clock, stop.target, python_threads=0 if native else _python_threads())
    notices = (*native.notices, *notices) if native else notices
    result = measurement_of(
        record,
        on_clock,
        name=name or (native.name if native else name_of(fn)),
        settings={"clock": on_clock.source, "call": "native" if native else "Python"},
        collector_paused=pause_gc and not record.collector_came_back,
        notices=notices,
    )
    if record.stopped_by is _native.StopReason.raised:
        error = record.exception
        raise CallableRaised(f"{result.name} raised {described(error)}; {kept_samples(result)}", result) from error
    return result


def _python_threads() -> int:
    return sum(each.name != ASLEEP for each in threading.enumerate())


def kept_samples(result: Measurement) -> str:
    """Describe what became of the samples taken before a run broke off."""
    if result.samples == 0:
        return "no sample was taken before it"
    count = quantity_text.count(result.samples, "sample")
    return f"the {count} before it {'is' if result.samples == 1 else 'are'} kept"


def measurement_of(
    record: _native.LoopRecord,
    clock: _native.Clock,
    *,
    name: str,
    settings: Mapping[str, str],
    collector_paused: bool,
    notices: tuple[Notice, ...],
) -> Measurement:
    floor = {
        "quantum_ns": clock.quantum_ns,
        "overhead_ns": clock.overhead_ns,
        "bias_ns": clock.bias_ns,
    }
    method = f"{clock.source} stamps around each sample, bias subtracted"
    resolution_ns = clock.quantum_ns / record.calls_per_sample
    quantities = {"wall_ns": Quantity("wall_ns", method, record.wall_ns, resolution_ns, floor)}
    absent = dict(_ABSENT_ON_CPU)
    if len(record.host_issue_ns) > 0:
        quantities["host_issue_ns"] = Quantity("host_issue_ns", method, record.host_issue_ns, resolution_ns, floor)
    else:
        absent["host_issue_ns"] = "no completion was given (done=), so issuing the call is all there is: see wall_ns"
    return Measurement(
        name=name,
        quantities=quantities,
        absent=absent,
        calls_per_sample=record.calls_per_sample,
        stopped_by=record.stopped_by.name,
        elapsed_s=record.elapsed_ns / 1e9,
        warm_up=WarmUp(
            kind=record.warm_up_kind.name,
            settled=record.warm_up_settled,
            calls=record.warm_up_calls,
            elapsed_s=record.warm_up_elapsed_ns / 1e9,
            first_call_ns=record.first_call_ns if record.first_call_ns > 0 else None,
        ),
        collector_paused=collector_paused,
        settings=settings,
        counts=record.groups.totals(),
        warnings=notices,
        group_table=record.groups,
    )
