"""A worker that announces more than it was asked for is refused before its bytes are read."""

from __future__ import annotations

import re
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.scenarios.asking import MOST_RAW_BYTES
from fairlap.scenarios.latency_messages import Measure
from fairlap.scenarios.load.load_messages import BYTES_OF_STAMPS, OfferLoad
from fairlap.worker.protocol import Quit
from workers_of_fake import Files, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of this process in /proc")

_WORKER = """
    import os, sys
    read, write = int(sys.argv[2]), int(sys.argv[4])
    requests, replies = os.fdopen(read, "rb"), os.fdopen(write, "wb")
    replies.write(b'{"type":"hello","protocol":3,"language":"x","pid":%d}\\n' % os.getpid())
    replies.flush()
    requests.readline()
    if "prepared" in sys.argv[0] or COUNT < 0:
        replies.write(b'{"type":"prepared","version":"1","in_force":{},"weights_hash":""}\\n')
        replies.flush()
        requests.readline()
    count = abs(COUNT)
    replies.write(b'{"type":"measured","quantities":[{"name":"wall_ns","count":%d,"method":"m","resolution_ns":1}],'
                  b'"calls_per_sample":1,"stopped_by":"samples","elapsed_s":1,"bytes":%d}\\n' % (count, 8 * count))
    block = bytes(2**20)
    try:
        for _ in range(8 * count // len(block) + 1):
            replies.write(block)
        replies.flush()
    except BrokenPipeError:
        pass
"""


def worker_of(folder: Path, count: int) -> WorkerProcess:
    script = folder / "worker.py"
    script.write_text(textwrap.dedent(_WORKER).replace("COUNT", str(count)))
    return WorkerProcess((sys.executable, str(script)), environment=environment())


def peak_bytes() -> int:
    [kib] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kib)


def test_samples_that_answer_another_request_are_not_read(tmp_path: Path) -> None:
    files, before, began_s = Files(tmp_path).write(), peak_bytes(), time.monotonic()
    with worker_of(tmp_path, 200_000_000) as worker, pytest.raises(WorkerLost) as lost:
        worker.prepare(files.request(), within_s=60)
    assert (lost.value.outcome, lost.value.code) == ("protocol", "E_PROTOCOL")
    assert "measured" in str(lost.value)
    assert peak_bytes() - before < 100 * 2**20
    assert time.monotonic() - began_s < 20


@pytest.mark.parametrize("asked", [{"samples": 50}, {"seconds": 0.01}])
def test_more_samples_than_were_asked_for_are_not_read(tmp_path: Path, asked: dict[str, float]) -> None:
    files, before = Files(tmp_path).write(), peak_bytes()
    with worker_of(tmp_path, -200_000_000) as worker:
        worker.prepare(files.request(), within_s=60)
        with pytest.raises(WorkerLost) as lost:
            worker.measure(within_s=60, **asked)  # type: ignore[arg-type]
    assert lost.value.code == "E_PROTOCOL"
    assert "1,600,000,000" in str(lost.value)
    assert peak_bytes() - before < 100 * 2**20


def test_the_most_that_may_be_announced_follows_the_request() -> None:
    load = OfferLoad("search", requests=1000, bound_s=None, percentile=99.0, seed=1, path="")
    assert load.most_raw_bytes(1.0) == 1000 * BYTES_OF_STAMPS
    assert Quit().most_raw_bytes(1e9) == 0
    assert 8 * 50 <= Measure(samples=50).most_raw_bytes(0.0) <= 20 * 8 * 50
    assert Measure(seconds=1.0).most_raw_bytes(1.0) >= 8 * 10**8
    assert Measure(seconds=1.0).most_raw_bytes(1e9) == MOST_RAW_BYTES
