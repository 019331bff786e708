"""Threads follow the tightest quota on the way up, and a quota above the own group is counted as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.machine.control_group import cores_worth, throttled

from .machines import BARE_METAL, CONTAINER_V1, CONTAINER_V2, Files, built

_POD = "sys/fs/cgroup/kubepods.slice/pod1"


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        (BARE_METAL, 8),
        (CONTAINER_V2, 1),  # 1.5 cores
        (CONTAINER_V1, 1),  # half a core
        (CONTAINER_V2 | {f"{_POD}/cpu.max": "400000 100000\n"}, 4),
        (CONTAINER_V2 | {f"{_POD}/cpu.max": "3200000 100000\n"}, 8),
        (CONTAINER_V2 | {f"{_POD}/cpu.max": "max 100000\n"}, 8),
    ],
)
def test_threads_follow_the_quota(tmp_path: Path, files: Files, cores: int) -> None:
    assert cores_worth(8, built(tmp_path, files)) == cores


def test_what_a_quota_further_up_stops_is_counted(tmp_path: Path) -> None:
    files = CONTAINER_V2 | {
        f"{_POD}/cpu.stat": "nr_periods 100\nnr_throttled 30\nthrottled_usec 2000000\n",
        f"{_POD}/inner/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
    }
    found = throttled(built(tmp_path, files))
    assert found is not None
    assert (found.periods, found.throttled_periods, found.seconds) == (100, 30, 2.0)
