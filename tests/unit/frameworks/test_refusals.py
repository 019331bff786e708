"""Paddle and MXNet refuse what they cannot do before they are imported."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.registry import framework_named
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.request.work import Precision


@pytest.mark.parametrize(
    ("name", "precision", "settings", "why"),
    [
        ("paddle", "bf16", {}, "paddle has no bf16: its products do not take it"),
        ("mxnet", "bf16", {}, "mxnet has no bf16: its products and normalisations do not take it"),
        ("paddle", "fp32", {"variant": "hybrid"}, "paddle has no variant 'hybrid'"),
        ("mxnet", "fp32", {"options": {"mode": "fast"}}, "mxnet has no option 'mode'; it has none"),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_reason(
    name: str, precision: Precision, settings: dict[str, Any], why: str
) -> None:
    found = find("mlp")
    work = Workload(found.spec, found.package, 1, "infer", precision, weights={}, inputs={})
    with pytest.raises(Unsupported) as refused:
        framework_named(name)().prepare(work, Settings(1, **settings), lambda _: nullcontext())
    assert str(refused.value) == why


@pytest.mark.parametrize("name", ["paddle", "mxnet"])
def test_the_threads_asked_for_stand_in_the_environment_before_it_starts(name: str) -> None:
    variables = framework_named(name).environment_for(Settings(threads=3))
    assert variables["OMP_NUM_THREADS"] == "3"
