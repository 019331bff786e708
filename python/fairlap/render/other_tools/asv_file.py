"""A results file of asv (``.asv.json``), to be put into ``results/MACHINE/``.

Contestants are a parameter, and samples are the medians of processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from fairlap.history.other_tools import OF_PROCESSES
from fairlap.render.other_tools.process_medians import ProcessMedians, commit_of, process_medians, quantiles
from fairlap.results.results import Results

_VERSION = 2  # of asv's results files
_COLUMNS = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
    "stats_q_75", "stats_number", "stats_repeat", "samples",
)  # fmt: skip


def encode(results: Results) -> bytes:
    """Write a results file, without intervals: asv's are of 99 %, and fairlap's over processes of 95 %."""
    facts, began = results.run.machine, results.run.began_at
    works: dict[str, list[ProcessMedians]] = {}
    for each in process_medians(results):
        works.setdefault(each.work, []).append(each)
    python = ".".join(facts.get("python", "").split(".")[:2])
    document = {
        "commit_hash": commit_of(results) or "0" * 40,
        "env_name": OF_PROCESSES,
        "date": _milliseconds(began),
        "params": {
            "machine": "fairlap",
            "python": python,
            "arch": facts.get("architecture", ""),
            "cpu": facts.get("cpu model", ""),
            "num_cpu": facts.get("cores", ""),
            "os": f"Linux {facts.get('kernel', '')}",
            "ram": facts.get("memory", ""),
        },
        "python": python,
        "requirements": {},
        "env_vars": {},
        "result_columns": _COLUMNS,
        "results": {work: _values(each, began) for work, each in works.items()},
        "durations": {},
        "version": _VERSION,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _values(found: Sequence[ProcessMedians], began: str) -> list[Any]:
    quarters = [quantiles(each.seconds, 0.25, 0.5, 0.75) for each in found]
    absent = [None] * len(found)
    return [
        [middle for _, middle, _ in quarters],
        [[repr(each.contestant) for each in found]],
        hashlib.sha256(found[0].work.encode()).hexdigest(),
        _milliseconds(began),
        None,
        absent,
        absent,
        [first for first, _, _ in quarters],
        [third for _, _, third in quarters],
        [1] * len(found),
        [len(each.seconds) for each in found],
        [list(each.seconds) for each in found],
    ]


def _milliseconds(began: str) -> int:
    return int(1000 * datetime.fromisoformat(began).timestamp()) if began else 0
