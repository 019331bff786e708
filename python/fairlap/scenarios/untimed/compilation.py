"""What compiling did to a contestant, and what a call costs at other batch sizes. Runs in processes that are not raced.

A shape that the framework has not seen may make it trace or compile again, and the first call then waits for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from fairlap.engine import time_calls
from fairlap.engine.measurement import CallableRaised
from fairlap.errors import described
from fairlap.frameworks.adapter_parts.answers import batch_of
from fairlap.frameworks.compilation import Compilation
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.models import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.spec import BATCH, BATCH_LABELS, LABELS
from fairlap.models.workload import Workload
from fairlap.scenarios.untimed.compilation_messages import Described, Resize, Resized

_LATER_CALLS = 15
_MOST_LATER_S = 1.0
_NOT_REPORTED = "its adapter does not report what compiling did"
_COUNTED = ("graphs", "graph_breaks", "operators")


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
        """What fails at one batch is reported, and others can still be asked for."""
        found = self._found
        if found is None:
            return Resized(why=_NOT_REPORTED)
        inputs = self._inputs(request)
        try:
            if found.bind is not None:
                return self._called(found, found.bind(inputs), request.batch, self._contestant)
            if request.batch != self._work.batch:
                return self._built_again(request.batch, inputs)
            return self._called(found, self._contestant.bind(inputs), request.batch, self._contestant)
        except MemoryError:
            raise
        except Unsupported as refused:
            return Resized(why=str(refused))
        except Exception as error:
            cause = error.__cause__ if isinstance(error, CallableRaised) and error.__cause__ else error
            return Resized(why=f"it failed at batch {request.batch}: {described(cause)}")

    def _inputs(self, request: Resize) -> Arrays:
        arrays = safetensors.read(Path(request.inputs))
        found = {tensor.name: arrays[tensor.name] for tensor in self._work.spec.inputs}
        if self._work.mode == "train" and BATCH_LABELS in arrays:
            found[LABELS] = arrays[BATCH_LABELS]
        return found

    def _built_again(self, batch: int, inputs: Arrays) -> Resized:
        if not any(BATCH in tensor.shape for tensor in self._work.spec.inputs):
            raise Unsupported("it is built for one batch, and so is the file that it reads; race it with that --batch")
        names = [tensor.name for tensor in self._work.spec.inputs]
        work = replace(
            self._work,
            batch=batch,
            inputs={name: inputs[name] for name in names},
            labels=inputs.get(LABELS, self._work.labels),
        )
        began_ns = time.perf_counter_ns()
        contestant = self._build(work)
        built_s = (time.perf_counter_ns() - began_ns) / 1e9
        resized = self._called(None, contestant.bind(inputs), batch, contestant)
        why = f"it is built for batch {self._work.batch} alone"
        return Resized(resized.first_s, resized.call_s, built_s, 1, (why,))

    def _called(
        self, found: Compilation | None, call: Callable[[], Any], batch: int, contestant: Contestant
    ) -> Resized:
        results: list[Any] = []

        def keeping() -> None:
            results[:] = [_completed(call, contestant)]

        graphs = None if found is None else found.graphs
        before = None if graphs is None else graphs()
        with nullcontext([]) if found is None else found.reasons() as reasons:
            first_s = _seconds(keeping, samples=1)[0]
        compiled = None if graphs is None or before is None else graphs() - before
        self._require_batch(contestant, results[0], batch)
        call_s = median(_seconds(keeping, samples=_LATER_CALLS))
        return Resized(first_s, call_s, None, compiled, tuple(dict.fromkeys(reasons)) if compiled else ())

    def _require_batch(self, contestant: Contestant, result: Any, batch: int) -> None:
        """A graph that was made for one batch may answer another one without an error, and with other work."""
        if self._work.mode != "infer":
            return
        outputs = contestant.outputs(result)
        for tensor in self._work.spec.outputs:
            then = tensor.sized(self._work.batch)
            if BATCH in tensor.shape:
                wanted = tensor.sized(batch)
            elif then and then[0] == self._work.batch:
                wanted = (batch, *then[1:])
            else:
                continue
            if outputs[tensor.name].shape != wanted:
                shape = list(outputs[tensor.name].shape)
                raise Unsupported(f"its output {tensor.name} is {shape} at batch {batch}, not {list(wanted)}")


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
