"""What a worker says is a message of the protocol and as long as was asked for, or ends that worker in one line."""

from __future__ import annotations

import re
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fairlap.launch import worker_process
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.scenarios.asking import MOST_RAW_BYTES
from fairlap.scenarios.calls.latency_messages import Measure
from fairlap.scenarios.load.load_messages import BYTES_OF_STAMPS, OfferLoad
from fairlap.worker.protocol import Quit
from machine_marks import needs_proc
from workers_of_fake import Files, environment

_BEGINS = """
import os, sys
out = os.fdopen(int(sys.argv[4]), "wb")
out.write(b'{"type":"hello","protocol":3,"language":"x","pid":%d}\\n' % os.getpid())
out.flush()
def say(raw):
    try:
        out.write(raw); out.flush()
    except BrokenPipeError:
        os._exit(0)
"""
PREPARED = """say(b'{"type":"prepared","version":"1","in_force":{},"weights_hash":""}\\n')\n"""

HOSTILE = {
    "a line of 70 MiB": "say(b'x' * (70 * 2**20) + b'\\n')",
    "a million brackets": "say(b'[' * 10**6 + b'\\n')",
    "brackets in a field that is not known": "say(b'{\"type\":\"prepared\",\"x\":' + b'[' * 10**5 + b'\\n')",
    "objects in a field that is not known": 'say(b\'{"type":"prepared","x":\' + b\'{"a":\' * 10**5 + b\'\\n\')',
    "bytes that are not UTF-8": 'say(b\'{"type":"prepared","version":"\\xff"}\\n\')',
    "NaN": 'say(b\'{"type":"phase","name":"x","seconds":NaN}\\n\')',
    "a number that is too large": 'say(b\'{"type":"phase","name":"x","seconds":1e999}\\n\')',
    "a request": 'say(b\'{"type":"quit"}\\n\')',
    "a greeting once more": 'say(b\'{"type":"hello","protocol":3,"language":"x","pid":1}\\n\')',
    "negative bytes": 'say(b\'{"type":"measured","quantities":[{"name":"w","count":-1,"method":"m","resolution_ns":1}],'
    '"calls_per_sample":1,"stopped_by":"x","elapsed_s":1,"bytes":-8}\\n\')',
    "a key twice": 'say(b\'{"type":"prepared","type":"ended"}\\n\')',
    "nothing at all": "out.close()",
}


def worker_of(folder: Path, says: str) -> WorkerProcess:
    script = folder / "worker.py"
    script.write_text(f"{_BEGINS}{says}\nimport time\ntime.sleep(100)\n")
    return WorkerProcess((sys.executable, str(script)), environment=environment())


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_message_ends_the_worker_in_one_line(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_END_AFTER_LAST_MESSAGE_S", 0.2)
    files, began_s = Files(tmp_path).write(), time.monotonic()
    with worker_of(tmp_path, HOSTILE[what]) as worker, pytest.raises(WorkerLost) as lost:
        worker.prepare(files.request(), within_s=60)
    assert lost.value.code == "E_PROTOCOL"
    assert len(str(lost.value).splitlines()) == 1
    assert len(str(lost.value)) < 1000
    assert time.monotonic() - began_s < 30


@pytest.mark.parametrize(("names", "most_cpu_s"), [(10_000, 3), pytest.param(100_000, 20, marks=pytest.mark.slow)])
def test_twice_as_many_phases_as_names_are_read_and_cost_little(tmp_path: Path, names: int, most_cpu_s: float) -> None:
    phases = "".join(
        f"""say(b''.join(b'{{"type":"phase","name":"p%d","seconds":{seconds}}}\\n' % n for n in range({names})))\n"""
        for seconds in ("1e308", "-1e308")
    )
    files, began_s = Files(tmp_path).write(), time.process_time()
    with worker_of(tmp_path, phases + PREPARED) as worker:
        assert worker.prepare(files.request(), within_s=120).version == "1"
        assert len(worker.phases_s) == names + 1
    assert time.process_time() - began_s < most_cpu_s


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


def announcing(folder: Path, count: int) -> WorkerProcess:
    script = folder / "worker.py"
    script.write_text(textwrap.dedent(_WORKER).replace("COUNT", str(count)))
    return WorkerProcess((sys.executable, str(script)), environment=environment())


def peak_bytes() -> int:
    [kib] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kib)


@needs_proc
def test_samples_that_answer_another_request_are_not_read(tmp_path: Path) -> None:
    files, before, began_s = Files(tmp_path).write(), peak_bytes(), time.monotonic()
    with announcing(tmp_path, 200_000_000) as worker, pytest.raises(WorkerLost) as lost:
        worker.prepare(files.request(), within_s=60)
    assert (lost.value.outcome, lost.value.code) == ("protocol", "E_PROTOCOL")
    assert "measured" in str(lost.value)
    assert peak_bytes() - before < 100 * 2**20
    assert time.monotonic() - began_s < 20


@needs_proc
@pytest.mark.parametrize("asked", [{"samples": 50}, {"seconds": 0.01}])
def test_more_samples_than_were_asked_for_are_not_read(tmp_path: Path, asked: dict[str, float]) -> None:
    files, before = Files(tmp_path).write(), peak_bytes()
    with announcing(tmp_path, -200_000_000) as worker:
        worker.prepare(files.request(), within_s=60)
        with pytest.raises(WorkerLost) as lost:
            worker.measure(within_s=60, **asked)  # type: ignore[arg-type]
    assert lost.value.code == "E_PROTOCOL"
    assert "1,600,000,000" in str(lost.value)
    assert peak_bytes() - before < 100 * 2**20


@needs_proc
def test_the_most_that_may_be_announced_follows_the_request() -> None:
    load = OfferLoad("search", requests=1000, bound_s=None, percentile=99.0, seed=1, path="")
    assert load.most_raw_bytes(1.0) == 1000 * BYTES_OF_STAMPS
    assert Quit().most_raw_bytes(1e9) == 0
    assert 8 * 50 <= Measure(samples=50).most_raw_bytes(0.0) <= 20 * 8 * 50
    assert Measure(seconds=1.0).most_raw_bytes(1.0) >= 8 * 10**8
    assert Measure(seconds=1.0).most_raw_bytes(1e9) == MOST_RAW_BYTES
