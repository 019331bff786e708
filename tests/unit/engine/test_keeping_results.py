"""Results can be pickled, and the memory they are kept in is asked for with care."""

from __future__ import annotations

import pickle
import subprocess
import sys

import fairlap
import numpy as np
import pytest
from fairlap.engine import time_calls
from machine_marks import needs_proc

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

# The process may grow by this much: less than 10^8 samples take, more than anything else here does.
ROOM_BYTES = 300_000_000

IN_LITTLE_MEMORY = f"""
import gc, resource
from pathlib import Path
import fairlap
from fairlap.engine import time_calls

time_calls(int, samples=1)  # loads whatever a run needs
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + {ROOM_BYTES}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
"""


def in_little_memory(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", IN_LITTLE_MEMORY + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def raised_after(calls: int) -> fairlap.CallableRaised:
    left = iter(range(calls))
    with pytest.raises(fairlap.CallableRaised) as caught:
        time_calls(lambda: next(left), samples=calls + 1, warmup=0)
    return caught.value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickled_measurement_comes_back_equal(protocol: int) -> None:
    result = time_calls(int, done=lambda _: None, samples=100)
    back: fairlap.Measurement = pickle.loads(pickle.dumps(result, protocol))
    np.testing.assert_array_equal(back.wall_ns, result.wall_ns)
    np.testing.assert_array_equal(back.host_issue_ns, result.host_issue_ns)
    np.testing.assert_array_equal(back.groups, result.groups)
    assert back.to_dict(raw=True) == result.to_dict(raw=True)
    assert str(back) == str(result)


def test_a_measurement_is_the_same_pickled_after_it_was_printed_and_came_back() -> None:
    result = time_calls(int, samples=100)
    before = pickle.dumps(result)
    text = str(result)
    assert pickle.dumps(result) == before
    assert str(pickle.loads(before)) == text
    assert pickle.loads(pickle.dumps(pickle.loads(before))).to_dict(raw=True) == result.to_dict(raw=True)


@pytest.mark.parametrize("calls", [0, 20])
def test_a_pickled_callable_raised_comes_back_with_its_result(calls: int) -> None:
    error = raised_after(calls)
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is fairlap.CallableRaised
    assert str(back) == str(error)
    assert back.result.samples == calls
    np.testing.assert_array_equal(back.result.wall_ns, error.result.wall_ns)
    assert str(back.result) == str(error.result)


@pytest.mark.sanitized
@needs_proc
def test_samples_that_do_not_fit_in_memory_are_not_available_and_leave_nothing_behind() -> None:
    done = in_little_memory("""
try:
    time_calls(int, samples=10**8)
except fairlap.NotAvailable as error:
    print(error.code, gc.isenabled(), time_calls(int, samples=5).samples)
""")
    assert done == "E_NOT_AVAILABLE True 5"


@pytest.mark.sanitized
@needs_proc
@pytest.mark.parametrize("warmup", ["'auto'", "100", "0"])
def test_seconds_bound_the_memory_of_many_samples(warmup: str) -> None:
    done = in_little_memory(f"""
result = time_calls(int, done=int, samples=10**8, seconds=0.05, warmup={warmup})
print(0 < result.samples < 10**8)
""")
    assert done == "True"
