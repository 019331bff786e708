"""The operators that take the time of each contestant, as lines for a terminal."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.race.run import Run
from fairlap.render.encoders.text import aligned
from fairlap.request.work import Work
from fairlap.results.columns.operators import OVERHEAD, ContestantProfile, contestant_profiles

_MOST_SHOWN = 5
_KERNELS = "Kernels, in untimed processes from the device's own records"
_LONGEST_NAME = 60  # kernels of templates have names of hundreds of characters


def operator_lines(run: Run, work: Work) -> list[str]:
    """Nothing where no contestant was profiled."""
    found = contestant_profiles(run, work)
    if not found:
        return []
    on_cpu = run.plan.device == "cpu"
    what = "Operators, in untimed processes under each framework's own profiler" if on_cpu else _KERNELS
    lines = [f"  {what}:"]
    for profile in found:
        lines.append(f"    {profile_head(profile)}")
        lines += [] if profile.why else [f"      {line}" for line in _top(profile)]
    return lines


def profile_head(profile: ContestantProfile) -> str:
    if profile.why:
        return f"{profile.contestant}: no profile: {profile.why} [{profile.code}]"
    processes = quantity_text.count(profile.processes, "process")
    took = f"a call took {quantity_text.duration(profile.call_ns)}, {quantity_text.times(profile.slowdown)} a plain one"
    together = f"; {profile.parallel:.2g} operators at a time" if profile.parallel > 1.05 else ""
    return f"{profile.contestant}: {profile.profiler}, {processes}, {took}{together}"


def _top(profile: ContestantProfile) -> list[str]:
    shown = profile.operators[:_MOST_SHOWN]
    cells = [
        (
            _fitting(each.operator.name),
            each.operator.kind,
            f"{quantity_text.number(each.operator.calls)} ×",
            quantity_text.duration(each.operator.self_ns),
            quantity_text.share(each.share),
        )
        for each in shown
    ]
    if rest := profile.operators[_MOST_SHOWN:]:
        rest_ns = sum(each.operator.self_ns for each in rest)
        name = quantity_text.count(len(rest), "more operator")
        cells.append((name, "", "", quantity_text.duration(rest_ns), quantity_text.share(sum(e.share for e in rest))))
    if profile.overhead_ns:
        share = quantity_text.share(profile.overhead_ns / profile.call_ns)
        cells.append((OVERHEAD, "", "", quantity_text.duration(profile.overhead_ns), share))
    return aligned(cells)


def _fitting(name: str) -> str:
    """Keep the beginning and the end, by which such names differ."""
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 3) // 2
    return f"{name[:half]}...{name[-half:]}"
