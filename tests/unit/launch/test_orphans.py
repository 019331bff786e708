"""A contestant that kills its guardian leaves nothing running after a race of the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from workers_of_fake import Files

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(sys.platform != "linux", reason="orphans are handed to subreapers by Linux"),
]

_RACE = """
import json, sys
from pathlib import Path
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.orphans import adopt_orphans
from workers_of_fake import Files, environment, left_of

folder, adopts = sys.argv[1:]
if adopts:
    adopt_orphans()
found = {}
with WorkerProcess(python_worker(), environment=environment()) as other:
    with WorkerProcess(python_worker(), environment=environment()) as hostile:
        try:
            hostile.prepare(Files(Path(folder)).request("stranger_and_crash_of_the_guardian@build"), within_s=60)
        except WorkerLost as lost:
            found["code"] = lost.code
    found["while another lives"] = left_of(hostile)
    other.quit()
found["at the end"] = left_of(hostile)
print(json.dumps(found))
"""


@pytest.mark.slow_but("False")
@pytest.mark.parametrize("adopts", [True, False])
def test_what_it_left_ends_with_the_last_contestant(tmp_path: Path, adopts: bool) -> None:
    Files(tmp_path).write()
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run(
        [sys.executable, "-c", _RACE, tmp_path, "adopts" * adopts],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["code"] == "E_CRASH"
    [stranger] = found["while another lives"]
    try:
        assert found["at the end"] == ([] if adopts else [stranger])
    finally:
        if not adopts:
            os.kill(stranger, signal.SIGKILL)
