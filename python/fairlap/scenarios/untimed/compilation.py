"""What compiling did to a contestant, and what a call costs on other inputs. Runs in processes that are not raced.

A shape or a type that the framework has not seen may make it trace or compile again, and the first call then waits for
that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from fairlap import quantity_text
from fairlap.engine import time_calls
from fairlap.engine.measurement import CallableRaised
from fairlap.errors import described
from fairlap.frameworks.adapter_parts.answers import batch_of
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.frameworks.contract_parts.compilation import Compilation, Types
from fairlap.models.array_files import safetensors
from fairlap.models.registry import spec_with
from fairlap.models.spec import BATCH, BATCH_LABELS, LABELS
from fairlap.models.workload import Workload
from fairlap.request.fields.sizes.other_inputs import InputType
from fairlap.request.work import CALIBRATED
from fairlap.scenarios.held import Held
from fairlap.scenarios.untimed.compilation_messages import Describe, Described, Resize, Resized

_LATER_CALLS = 15
_MOST_LATER_S = 1.0
_NUMBERS = {"float": "floating-point numbers", "int": "integers"}
_NOT_REPORTED = "its adapter does not report what compiling did"
_COUNTED = ("graphs", "graph_breaks", "operators")


def describe(held: Held, _request: Describe) -> tuple[Described, tuple[()]]:
    return _calls(held).describe(), ()


def resize(held: Held, request: Resize) -> tuple[Resized, tuple[()]]:
    return _calls(held).resize(request), ()


def _calls(held: Held) -> CompilationCalls:
    if held.elsewhere:
        raise Unsupported(f"{held.elsewhere}, and what was compiled there is not known")
    return held.part(CompilationCalls, lambda: CompilationCalls(held.contestant, held.read_again()[0], held.build))


class CompilationCalls:
    """Of one contestant. ``build`` prepares it again for another work, as it was prepared for ``work``."""

    def __init__(self, contestant: Contestant, work: Workload, build: Callable[[Workload], Contestant]) -> None:
        self._contestant, self._work, self._build = contestant, work, build
        # Some count what they compiled when it is called, and calls at this batch must not be the first.
        _completed(contestant.bind(batch_of(work)), contestant)
        self._found: Compilation | None = None if contestant.compilation is None else contestant.compilation()

    def describe(self) -> Described:
        found = self._found
        if found is None:
            return Described(absent=dict.fromkeys(_COUNTED, _NOT_REPORTED))
        graphs = None if found.graphs is None else found.graphs()
        breaks = None if found.breaks is None else tuple(found.breaks())
        absent = {"graph_breaks" if name == "breaks" else name: why for name, why in found.absent.items()}
        operators = None
        if found.operators is not None:
            try:
                operators = found.operators()
            except Exception as error:  # it reads texts and structures that a release may change
                absent["operators"] = f"they could not be counted: {described(error)}"
        return Described(
            graphs,
            None if breaks is None else len(breaks),
            breaks or (),
            operators,
            found.bind is not None,
            absent,
        )

    def resize(self, request: Resize) -> Resized:
        """Call on other inputs, and report what fails on some, so that others can still be asked for."""
        found = self._found
        if found is None:
            return Resized(why=_NOT_REPORTED)
        began_ns = time.perf_counter_ns()
        try:
            work = self._work_on(request)
            if request.input_type is not None:
                return self._called_as(request.input_type, found, work)
            if found.bind is not None:
                return self._called(found, found.bind(batch_of(work)), work, self._contestant)
            if request.batch != self._work.batch or request.free_sizes:
                return self._built_again(work)
            return self._called(found, self._contestant.bind(batch_of(work)), work, self._contestant)
        except MemoryError:
            raise
        except Unsupported as refused:
            return Resized(why=str(refused))
        except Exception as error:
            cause = error.__cause__ if isinstance(error, CallableRaised) and error.__cause__ else error
            after = quantity_text.duration(float(time.perf_counter_ns() - began_ns))
            return Resized(why=_failure(request, found, described(cause), after))

    def _work_on(self, request: Resize) -> Workload:
        spec = spec_with(self._work.package, request.free_sizes) if request.free_sizes else self._work.spec
        inputs = self._inputs(request)
        labels = inputs.pop(LABELS, self._work.labels)
        return replace(
            self._work,
            spec=spec,
            batch=request.batch,
            inputs=inputs,
            labels=labels,
            free_sizes=request.free_sizes,
        )

    def _called_as(self, wanted: InputType, found: Compilation, work: Workload) -> Resized:
        """Integers stay integers, so that it is the same work."""
        kind = wanted.rstrip("0123456789").removeprefix("b")
        types: Types = {each.name: wanted for each in work.spec.inputs if each.dtype.startswith(kind)}
        if not types:
            raise Unsupported(f"none of its inputs holds {_NUMBERS[kind]}")
        if found.bind_as is None:
            raise Unsupported("its adapter does not call it with inputs of another type")
        return self._called(found, found.bind_as(batch_of(work), types), work, self._contestant)

    def _inputs(self, request: Resize) -> dict[str, Any]:
        arrays = safetensors.read(Path(request.inputs))
        found = {tensor.name: arrays[tensor.name] for tensor in self._work.spec.inputs}
        if self._work.mode == "train" and BATCH_LABELS in arrays:
            found[LABELS] = arrays[BATCH_LABELS]
        return found

    def _built_again(self, work: Workload) -> Resized:
        if not any(BATCH in tensor.shape for tensor in self._work.spec.inputs):
            raise Unsupported("it is built for one batch, and so is the file that it reads; race it with that --batch")
        if work.precision in CALIBRATED:
            raise Unsupported(
                f"it was quantized with calibration data of batch {self._work.batch}, and runs no other batch or size; "
                "race it with that --batch"
            )
        began_ns = time.perf_counter_ns()
        contestant = self._build(work)
        built_s = (time.perf_counter_ns() - began_ns) / 1e9
        resized = self._called(None, contestant.bind(batch_of(work)), work, contestant)
        only = "these sizes" if work.free_sizes else f"batch {self._work.batch}"
        why = f"it is built for {only} alone"
        return Resized(resized.first_s, resized.call_s, built_s, 1, (why,))

    def _called(
        self, found: Compilation | None, call: Callable[[], Any], work: Workload, contestant: Contestant
    ) -> Resized:
        results: list[Any] = []

        def keeping() -> None:
            results[:] = [_completed(call, contestant)]

        graphs = None if found is None else found.graphs
        before = None if graphs is None else graphs()
        with nullcontext([]) if found is None else found.reasons() as reasons:
            first_s = _seconds(keeping, samples=1)[0]
        compiled = None if graphs is None or before is None else graphs() - before
        self._require_sizes(contestant, results[0], work)
        call_s = median(_seconds(keeping, samples=_LATER_CALLS))
        return Resized(first_s, call_s, None, compiled, tuple(dict.fromkeys(reasons)) if compiled else ())

    def _require_sizes(self, contestant: Contestant, result: Any, work: Workload) -> None:
        """Check the outputs' sizes: a graph for one batch may answer another one without an error, with other work."""
        if self._work.mode != "infer":
            return
        outputs = contestant.outputs(result)
        for tensor in work.spec.outputs:
            then = tensor.sized(self._work.batch)
            if BATCH in tensor.shape:
                wanted = tensor.sized(work.batch)
            elif then and then[0] == self._work.batch:
                wanted = (work.batch, *then[1:])
            else:
                continue
            if outputs[tensor.name].shape != wanted:
                shape = list(outputs[tensor.name].shape)
                raise Unsupported(f"its output {tensor.name} is {shape} at batch {work.batch}, not {list(wanted)}")


def _failure(request: Resize, found: Compilation, raised: str, after: str) -> str:
    if request.input_type is not None:
        return f"it refused {request.input_type} inputs after {after}: {found.fixed_types or raised}"
    sizes = [f"{name}={size}" for name, size in request.free_sizes.items()]
    return f"it failed at {', '.join(sizes) or f'batch {request.batch}'}: {raised}"


def _completed(call: Callable[[], Any], contestant: Contestant) -> Any:
    result = call()
    if contestant.done is not None:
        contestant.done(result)
    return result


def _seconds(call: Callable[[], Any], samples: int) -> list[float]:
    once = time_calls(call, samples=samples, seconds=_MOST_LATER_S, warmup=0, calls_per_sample=1)
    if once.interrupted:
        raise KeyboardInterrupt
    return [float(each) / 1e9 for each in once.wall_ns]
