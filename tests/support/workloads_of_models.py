"""The work of a model as the tests need it: drawn from a seed, without files."""

from __future__ import annotations

from typing import Any

import pytest
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.names import workload_names
from fairlap.models.registry import find
from fairlap.models.spec import Spec
from fairlap.models.workload import Workload
from fairlap.request.work import Mode

_QUICK_GMACS = 0.2
_QUICK_GMACS_OF_ALL = 5.0  # an inference for each weight
_QUICK_PARAMETERS = 10_000_000


def workload_of(model: str, mode: Mode = "infer", batch: int = 2, seed: int = 0) -> Workload:
    found = find(model)
    spec = found.spec
    weights, inputs = draw_weights(spec, seed), draw_inputs(spec, batch, seed)
    return Workload(spec, found.package, batch, mode, "fp32", weights, inputs, draw_labels(spec, batch, seed))


def our_models() -> list[str]:
    return [name for name in workload_names() if find(name).package == f"fairlap.bench_models.{name}"]


def models_that_infer() -> list[str]:
    """Not differential equations, which are solved, nor functions, whose derivatives race."""
    modes = {name: find(name).spec.modes for name in workload_names()}
    return [name for name, own in modes.items() if "infer" in own and "jacobian" not in own]


def quick_models() -> list[Any]:
    """Those that infer, and whose reference takes no time worth speaking of; marked slow where each weight is tried."""
    ours = our_models()
    specs = [find(name).spec for name in models_that_infer() if name in ours]
    quick = [spec for spec in specs if (spec.gmacs_per_item or 0.0) < _QUICK_GMACS]
    return [
        pytest.param(spec.name, marks=[pytest.mark.slow] if _takes_long(spec) else [])
        for spec in quick
        if spec.parameters < _QUICK_PARAMETERS
    ]


def _takes_long(spec: Spec) -> bool:
    return (spec.gmacs_per_item or 0.0) * len(spec.weights) > _QUICK_GMACS_OF_ALL
