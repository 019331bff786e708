"""What a worker says is a message of the protocol, or ends that worker in one line; the parent goes on."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
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
def test_what_is_no_message_ends_the_worker_in_one_line(tmp_path: Path, what: str) -> None:
    files, began_s = Files(tmp_path).write(), time.monotonic()
    with worker_of(tmp_path, HOSTILE[what]) as worker, pytest.raises(WorkerLost) as lost:
        worker.prepare(files.request(), within_s=60)
    assert lost.value.code == "E_PROTOCOL"
    assert len(str(lost.value).splitlines()) == 1
    assert len(str(lost.value)) < 1000
    assert time.monotonic() - began_s < 30


def test_two_hundred_thousand_phases_are_read_and_cost_little(tmp_path: Path) -> None:
    phases = "".join(
        f"""say(b''.join(b'{{"type":"phase","name":"p%d","seconds":{seconds}}}\\n' % n for n in range(100_000)))\n"""
        for seconds in ("1e308", "-1e308")
    )
    files, began_s = Files(tmp_path).write(), time.process_time()
    with worker_of(tmp_path, phases + PREPARED) as worker:
        assert worker.prepare(files.request(), within_s=120).version == "1"
        assert len(worker.phases_s) == 100_001
    assert time.process_time() - began_s < 20
