"""The JSON of pytest-benchmark (``.pytest-benchmark.json``), for ``pytest-benchmark compare``. A round is a process."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import msgspec

from fairlap.history.other_tools import OF_PROCESSES, benchmark_name
from fairlap.render.other_tools.process_medians import ProcessMedians, commit_of, process_medians, quantiles
from fairlap.results.results import Results

_VERSION = "5.1.0"  # of pytest-benchmark, whose files these are like


def encode(results: Results) -> bytes:
    run = results.run
    document = {
        "machine_info": {
            "node": "",
            "processor": "",
            "machine": run.machine.get("architecture", ""),
            "python_implementation": "CPython",
            "python_version": run.machine.get("python", ""),
            "release": run.machine.get("kernel", ""),
            "system": "Linux",
            "cpu": {"brand_raw": run.machine.get("cpu model", ""), "count": run.machine.get("cores", "")},
        },
        "commit_info": {"id": commit_of(results), "time": run.began_at or None, "dirty": False, "project": "fairlap"},
        "benchmarks": [_benchmark(each) for each in process_medians(results)],
        "datetime": run.began_at,
        "version": _VERSION,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _benchmark(found: ProcessMedians) -> dict[str, Any]:
    name = benchmark_name(found.work, found.contestant)
    return {
        "group": found.work,
        "name": name,
        "fullname": name,
        "params": {"contestant": found.contestant},
        "param": found.contestant,
        "extra_info": {"samples": OF_PROCESSES},
        "options": {"disable_gc": True, "timer": "fairlap", "warmup": True},
        "stats": _stats(found.seconds),
    }


def _stats(seconds: tuple[float, ...]) -> dict[str, Any]:
    first, middle, third = quantiles(seconds, 0.25, 0.5, 0.75)
    reach = 1.5 * (third - first)
    inside = [each for each in seconds if first - reach <= each <= third + reach]
    mean, deviation = fmean(seconds), stdev(seconds) if len(seconds) > 1 else 0.0
    beyond = sum(abs(each - mean) > deviation for each in seconds)
    outliers = len(seconds) - len(inside)
    return {
        "min": min(seconds),
        "max": max(seconds),
        "mean": mean,
        "stddev": deviation,
        "rounds": len(seconds),
        "median": middle,
        "iqr": third - first,
        "q1": first,
        "q3": third,
        "iqr_outliers": outliers,
        "stddev_outliers": beyond,
        "outliers": f"{beyond};{outliers}",
        "ld15iqr": min(inside),
        "hd15iqr": max(inside),
        "ops": 1 / mean,
        "total": sum(seconds),
        "data": list(seconds),
        "iterations": 1,
    }
