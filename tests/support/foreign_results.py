"""Results in the layout in which asv, github-action-benchmark and pytest-benchmark write them, with known values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COMMITS = 24
SLOWER_FROM = 12
FIRST_MS = 1_767_225_600_000  # 1 January 2026
DAY_MS = 86_400_000


def commit(number: int) -> str:
    return f"{number:02x}" * 20


def seconds(number: int) -> float:
    """Known values: a step of a fifth, and a wobble below a thousandth."""
    return (0.0012 if number >= SLOWER_FROM else 0.001) * (1 + 0.0005 * (number * 7 % 5 - 2))


_MACHINE = {
    "arch": "x86_64", "cpu": "A Processor", "machine": "bench", "num_cpu": "8", "os": "Linux 6.1", "ram": "32GB",
    "version": 1,
}  # fmt: skip
_BENCHMARKS = {
    "suite.time_parse": {
        "code": "def time_parse(self): ...", "min_run_count": 2, "name": "suite.time_parse", "number": 0,
        "param_names": [], "params": [], "type": "time", "unit": "seconds", "version": "v1",
    },
    "suite.time_sort": {
        "code": "def time_sort(self, n, kind): ...", "name": "suite.time_sort", "param_names": ["n", "kind"],
        "params": [["10", "100"], ["'quick'", "'heap'"]], "type": "time", "unit": "seconds", "version": "v1",
    },
    "suite.peakmem_load": {
        "code": "def peakmem_load(self): ...", "name": "suite.peakmem_load", "param_names": [], "params": [],
        "type": "peakmemory", "unit": "bytes", "version": "v1",
    },
    "version": 2,
}  # fmt: skip
_COLUMNS = [
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
    "stats_q_75", "stats_number", "stats_repeat", "samples", "profile",
]  # fmt: skip


def asv_folder(folder: Path, version: int = 2) -> Path:
    """Write machine.json, benchmarks.json and a file for each commit, as asv does in either version."""
    (folder / "bench").mkdir(parents=True)
    (folder / "benchmarks.json").write_text(json.dumps(_BENCHMARKS))
    (folder / "bench" / "machine.json").write_text(json.dumps(_MACHINE))
    for number in range(COMMITS):
        own = _asv_2(number) if version == 2 else _asv_1(number)
        name = f"{commit(number)[:8]}-virtualenv-py3.12.json"
        (folder / "bench" / name).write_text(json.dumps(own))
    return folder


def _common(number: int) -> dict[str, Any]:
    return {
        "commit_hash": commit(number),
        "env_name": "virtualenv-py3.12",
        "date": FIRST_MS + number * DAY_MS,
        "params": {**{key: value for key, value in _MACHINE.items() if key != "version"}, "python": "3.12"},
        "python": "3.12",
        "requirements": {},
        "env_vars": {},
    }


def _asv_2(number: int) -> dict[str, Any]:
    time = seconds(number)
    return {
        **_common(number),
        "result_columns": _COLUMNS,
        "results": {
            "suite.time_parse": [[time], [], "v1", 1, 0.5, [0.99 * time], [1.01 * time], [time], [time], [1], [9]],
            # the third failed and the fourth was skipped
            "suite.time_sort": [
                [2 * time, 3 * time, None, float("nan")], [["10", "100"], ["'quick'", "'heap'"]], "v1", 1, 0.5,
                [1.9 * time, float("-inf"), None, None], [2.1 * time, float("inf"), None, None],
            ],
            "suite.peakmem_load": [[50_000_000 + 4096 * (number % 3)], [], "v1", 1],
            "suite.time_gone": [[time], [], "v1"],
        },
        "durations": {"<build>": 1.5},
        "version": 2,
    }  # fmt: skip


def _asv_1(number: int) -> dict[str, Any]:
    time = seconds(number)

    def stats(factor: float) -> dict[str, Any]:
        return {"ci_99": [factor * time * 0.99, factor * time * 1.01], "mean": time, "std": 0.0, "n": 9, "number": 1}

    return {
        **_common(number),
        "results": {
            "suite.time_parse": {"result": [time], "stats": [stats(1)]},
            "suite.time_sort": {
                "params": [["10", "100"], ["'quick'", "'heap'"]],
                "result": [2 * time, 3 * time, None, float("nan")],
                "stats": [{**stats(2), "ci_99": [1.9 * time, 2.1 * time]}, None, None, None],
            },
            "suite.peakmem_load": 50_000_000 + 4096 * (number % 3),
            "suite.time_gone": time,
        },
        "started_at": {},
        "ended_at": {},
        "benchmark_version": dict.fromkeys(("suite.time_parse", "suite.time_sort", "suite.peakmem_load"), "v1"),
        "profiles": {},
        "version": 1,
    }


def action_data() -> dict[str, Any]:
    """Build what github-action-benchmark keeps of these commits."""
    person = {"email": "a@example.com", "name": "A", "username": "a"}
    measured = [
        {
            "commit": {
                "author": person, "committer": person, "distinct": True, "id": commit(number), "message": "m",
                "timestamp": "2026-01-01T00:00:00Z", "tree_id": "f" * 40, "url": f"https://example.com/{number}",
            },
            "date": FIRST_MS + number * DAY_MS,
            "tool": "cargo",
            "benches": [
                {"name": "parse", "value": round(1e9 * seconds(number)), "range": "± 1,234", "unit": "ns/iter"},
                {"name": "speed", "value": 1 / seconds(number), "range": "stddev: 0.1", "unit": "iter/sec",
                 "extra": "mean: 1"},
                {"name": "share", "value": 200.0, "range": "± 2%", "unit": "things"},
            ],
        }
        for number in range(COMMITS)
    ]  # fmt: skip
    return {"lastUpdate": FIRST_MS, "repoUrl": "https://github.com/a/b", "entries": {"Rust": measured}}


def data_js() -> str:
    return f"window.BENCHMARK_DATA = {json.dumps(action_data(), indent=2)}"


def pytest_folder(folder: Path) -> Path:
    """Write a file for each run into the folder of the machine, as `pytest --benchmark-autosave` does."""
    own = folder / "Linux-CPython-3.12-64bit"
    own.mkdir(parents=True)
    for number in range(COMMITS):
        name = f"{number + 1:04}_{commit(number)}_20260101_000000.json"
        (own / name).write_text(json.dumps(_pytest(number), indent=4))
    return folder


def _pytest(number: int) -> dict[str, Any]:
    time = seconds(number)
    stats = {
        "min": 0.9 * time, "max": 2 * time, "mean": 1.1 * time, "stddev": 0.1 * time, "rounds": 50, "median": time,
        "iqr": 0.1 * time, "q1": 0.95 * time, "q3": 1.05 * time, "iqr_outliers": 1, "stddev_outliers": 2,
        "outliers": "2;1", "ld15iqr": 0.9 * time, "hd15iqr": 1.1 * time, "ops": 1 / time, "total": 50 * time,
        "iterations": 1,
    }  # fmt: skip
    return {
        "machine_info": {
            "node": "host", "processor": "x86_64", "machine": "x86_64", "python_compiler": "GCC 13",
            "python_implementation": "CPython", "python_implementation_version": "3.12.3", "python_version": "3.12.3",
            "python_build": ["main", "Jan 1 2026"], "release": "6.1", "system": "Linux",
            "cpu": {"brand_raw": "A Processor", "count": 8, "arch": "X86_64"},
        },
        "commit_info": {
            "id": commit(number), "time": "2026-01-01T00:00:00+00:00", "author_time": "2026-01-01T00:00:00+00:00",
            "dirty": False, "project": "pk", "branch": "main" if number != 3 else "trial",
        },
        "benchmarks": [
            {"group": None, "name": "test_parse[10]", "fullname": "tests/test_speed.py::test_parse[10]",
             "params": {"n": 10}, "param": "10", "extra_info": {}, "options": {"warmup": False}, "stats": stats},
        ],
        "datetime": f"2026-01-{number + 1:02}T12:00:00.123456+00:00",
        "version": "5.1.0",
    }  # fmt: skip
