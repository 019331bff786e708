"""Kernel times by us and by PyTorch's profiler, in turns and in one process.

PyTorch's profiler registers the processor's counter as CUPTI's clock at the start of each session (libkineto).
"""

from __future__ import annotations

from ..json_lines import report, run_program
from .framework_work import Work, torch_imported, torch_work
from .timers.with_torch import kernel_lengths_ns

CALLS = 10


def report_in_turns() -> None:
    work = torch_work()
    for when in ("before", "after one session", "after two sessions"):
        _ours(work, when)
        _theirs(work, when)


def _ours(work: Work, when: str) -> None:
    from fairlap.engine.cuda.stream_calls import time_on_stream
    from fairlap.errors import FairlapError

    try:
        found = time_on_stream(
            work.call,
            stream=work.stream,
            method="kernel_sum",
            done=work.done,
            samples=CALLS,
            warmup=3,
            calls_per_sample=1,
        )
    except FairlapError as refused:  # the profiler may keep CUPTI to itself; a refusal is no wrong figure
        report(by="fairlap", when=when, ns=None, note=str(refused))
        return
    report(by="fairlap", when=when, ns=found.median_ns, invalid=sum(found.invalid.values()), note="")


def _theirs(work: Work, when: str) -> None:
    torch = torch_imported()
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(CALLS):
            work.call()
        torch.cuda.synchronize()
    lengths = kernel_lengths_ns(profile)
    note = "" if lengths else "it recorded no kernel"
    report(by="torch.profiler", when=when, ns=sum(lengths) / CALLS if lengths else None, invalid=0, note=note)


if __name__ == "__main__":
    run_program(report_in_turns)
