"""The files a worker is handed, as the workload that adapters take."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.race.protocol import Prepare
from fairlap.workloads import safetensors
from fairlap.workloads.draw import LABELS
from fairlap.workloads.workload import Arrays, Workload


def workload_of(request: Prepare) -> Workload:
    inputs, labels = inputs_in(Path(request.inputs_file))
    mode: Any = request.mode
    precision: Any = request.precision
    return Workload(
        spec=import_module(f"{request.package}.spec").SPEC,
        package=request.package,
        batch=request.batch,
        mode=mode,
        precision=precision,
        weights=safetensors.read(Path(request.weights_file)),
        inputs=inputs,
        labels=labels,
    )


def inputs_in(file: Path) -> tuple[Arrays, npt.NDArray[np.int32] | None]:
    arrays = dict(safetensors.read(file))
    return arrays, arrays.pop(LABELS, None)
