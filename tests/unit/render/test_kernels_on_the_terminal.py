"""Kernels of a GPU on the terminal: they are called kernels, and long names are cut in the middle."""

from __future__ import annotations

import msgspec
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.render.text.operators import operator_lines
from fairlap.scenarios.untimed.profile_messages import Operator, Profile
from runs_for_rows import a_run

_LONG = f"at::native::first<{'float, ' * 40}int>::last"


def test_kernels_of_a_gpu_are_listed_by_names_that_fit() -> None:
    run = a_run()
    [work] = run.plan.works
    kernels = (Operator(_LONG, "matmul", 1.0, 6e4), Operator("memset", "copy", 1.0, 2e4))
    run.profiles = [ProfileResult(0, "torch", work.id, profile=Profile("CUPTI", 9, 1e5, 9e4, kernels))]
    heading = operator_lines(run, work)[0]
    run.plan = msgspec.structs.replace(run.plan, device="cuda:0")
    lines = operator_lines(run, work)
    assert lines[0] != heading
    assert "CUPTI" in lines[1]
    [long] = [line for line in lines if "matmul" in line]
    name = long.split("  matmul")[0].strip()
    assert len(name) <= 60
    assert (name[:12], name[-4:]) == (_LONG[:12], _LONG[-4:])
    assert any(line.split()[0] == "overhead" for line in lines)
