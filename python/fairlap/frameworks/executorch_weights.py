"""The weights that an ExecuTorch program holds. The runtime tells neither their names nor their values, so each is
looked for among the program's bytes, bit for bit, in the layouts that its kernels and XNNPACK's take."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlap.frameworks.answers import Answers
from fairlap.workloads.workload import Arrays

_KERNEL_LAYOUTS = ((0, 1, 2, 3), (0, 2, 3, 1), (1, 2, 3, 0))  # as given, channels last, depthwise for XNNPACK


def weights_in(program: bytes, given: Arrays) -> Answers:
    """All of the given weights as they stand in the program, or those before the first that is not there."""
    found: Answers = {}
    for name, weight in given.items():
        held = _found(program, weight)
        if held is None:
            break
        found[name] = held
    return found


def told(found: Answers, given: Arrays) -> str:
    missing = next((name for name in given if name not in found), None)
    if missing is None:
        return "found by value in the program's bytes; the runtime cannot be asked"
    return f"not read back: {missing} is not in the program as it was given, as when it is folded into another"


def _found(program: bytes, weight: npt.NDArray[np.float32]) -> npt.NDArray[np.float32] | None:
    layouts = _KERNEL_LAYOUTS if weight.ndim == 4 else (tuple(range(weight.ndim)),)
    for axes in layouts:
        turned = weight.transpose(axes)
        at = program.find(turned.tobytes())
        if at >= 0:
            held = np.frombuffer(program, np.float32, weight.size, at).reshape(turned.shape)
            return np.ascontiguousarray(held.transpose(np.argsort(axes)))
    return None
