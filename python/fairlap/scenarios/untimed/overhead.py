"""The overhead of a call: what it takes in a framework when there is next to nothing to compute.

Measured with the built-in model ``empty``, in the process and with the settings of a contestant.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from fairlap.errors import described
from fairlap.frameworks.adapter_parts.differentiated import DIRECTION
from fairlap.frameworks.contract import Framework, Settings, device_number
from fairlap.models.arrays import Arrays
from fairlap.models.registry import spec_at
from fairlap.models.workload import Workload
from fairlap.request.work import CALIBRATED, Precision
from fairlap.scenarios.calls.timed_inputs import in_memory
from fairlap.scenarios.device_quantities import with_completion
from fairlap.scenarios.held import Held
from fairlap.scenarios.untimed.profile_messages import Overhead, OverheadMeasured

EMPTY = "fairlap.bench_models.empty"
_SECONDS = 0.05


def serve(held: Held, _request: Overhead) -> tuple[OverheadMeasured, tuple[()]]:
    """Whatever it raises is the reason why its time is unknown: all that was asked for has been measured."""
    held.before_second()
    if held.elsewhere:
        return OverheadMeasured(why=held.elsewhere), ()
    try:
        return OverheadMeasured(overhead_of_a_call_ns(held.framework(), held.settings, held.precision)), ()
    except (Exception, SystemExit) as error:
        return OverheadMeasured(why=described(error)), ()


def overhead_of_a_call_ns(framework: Framework, settings: Settings, precision: Precision) -> float:
    """Measure the median of an inference, which takes no direction of derivatives.

    int8 and fp8 are measured in float32, since quantization has nothing to do in this model.
    """
    from fairlap.engine import time_calls

    inputs = _inputs()
    settings = replace(settings, options={name: each for name, each in settings.options.items() if name != DIRECTION})
    held: Precision = "fp32" if precision in CALIBRATED else precision
    work = Workload(spec_at(EMPTY), EMPTY, 1, "infer", held, {}, inputs)
    contestant = framework.prepare(work, settings, lambda _: nullcontext())
    if settings.device != "cpu":
        contestant = with_completion(contestant, device_number(settings.device))
    call = contestant.bind(inputs)
    answer = contestant.outputs(_completed(contestant.done, call()))
    [(name, given)] = inputs.items()
    [shown] = answer.values()
    if not np.allclose(shown, given + 1, rtol=1e-2):
        raise ValueError(f"its answer to the model {EMPTY.rpartition('.')[2]} is wrong ({name} + 1)")
    measured = time_calls(call, done=contestant.done, seconds=_SECONDS)
    return float(np.nanmedian(measured.wall_ns))


def _completed(done: Any, result: Any) -> Any:
    if done is not None:
        done(result)
    return result


def _inputs() -> Arrays:
    """Aligned and read-only, as every workload's."""
    return {
        tensor.name: in_memory(np.arange(np.prod(tensor.sized(1)), dtype=np.float32).reshape(tensor.sized(1)))
        for tensor in spec_at(EMPTY).inputs
    }
