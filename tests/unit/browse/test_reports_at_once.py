"""Forty reports at once: each is made, the server stays within its memory, and answers others meanwhile."""

from __future__ import annotations

import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve; `make test` installs it and runs this")
pytest.importorskip("vl_convert", reason="needs the extra report; `make test` installs it and runs this")

from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole
from serving import serving

REPORTS = 40
LONGEST_S, MOST_GROWTH_BYTES = 60, 2**30


def _got(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=LONGEST_S) as answer:
        return answer.status, answer.read()


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
def test_forty_reports_at_once_are_made_and_others_are_answered(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.sqlite") as store:
        run = keep_whole(store, a_run())
    with serving(tmp_path / "runs.sqlite") as (process, address), ThreadPoolExecutor(REPORTS) as clients:
        _, page = _got(f"{address}runs/{run}")
        before_bytes = _resident_bytes(process.pid)
        began_s = time.monotonic()
        asked = [clients.submit(_got, f"{address}runs/{run}") for _ in range(REPORTS)]
        status, listed = _got(f"{address}api/runs")
        assert status == 200
        assert len(json.loads(listed)["runs"]) == 1
        assert [each.result() for each in asked] == [(200, page)] * REPORTS
        assert time.monotonic() - began_s < LONGEST_S
        assert _resident_bytes(process.pid) - before_bytes < MOST_GROWTH_BYTES
        assert process.poll() is None
        assert _got(f"{address}api/runs")[0] == 200
