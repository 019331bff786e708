"""What a call allocates is counted exactly: as calls of ``malloc`` by hand, and as the C library's own tool counts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from fairlap import verdict
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.meters.allocations import LIBRARY
from fairlap.race.planning.plan_required import with_required
from fairlap.race.processes.counted_allocations import counting_environment, require_countable
from fairlap.results.columns.memory import allocations_of as allocation_columns
from fairlap.results.quantities.other_quantities import compare_other_quantities
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.calls.calls_scenario import judged_calls
from fairlap.scenarios.untimed.allocations import allocations_of
from machine_marks import needs_proc
from small_races import plan_of, raced

pytestmark = [
    pytest.mark.sanitized,
    needs_proc,
    pytest.mark.skipif(not LIBRARY.is_file(), reason=f"{LIBRARY.name} is built for Linux"),
]

BY_HAND = """
import ctypes, json, threading
from fairlap.scenarios.untimed.allocations import allocations_of

c = ctypes.CDLL(None)
size, pointer = ctypes.c_size_t, ctypes.c_void_p
for name, types in {{"malloc": [size], "calloc": [size, size], "realloc": [pointer, size], "memalign": [size, size],
                    "aligned_alloc": [size, size], "posix_memalign": [ctypes.POINTER(pointer), size, size]}}.items():
    getattr(c, name).restype, getattr(c, name).argtypes = pointer, types
c.free.argtypes, c.free.restype = [pointer], None
def nothing():
    pass

def each_kind_once():
    block = pointer()
    c.free(c.malloc(1000))
    c.free(c.calloc(10, 200))
    c.free(c.realloc(c.malloc(1), 3000))
    c.free(c.memalign(64, 4096))
    c.free(c.aligned_alloc(64, 6400))
    c.posix_memalign(ctypes.byref(block), 64, 7000)
    c.free(block)

def in_four_threads():
    threads = [threading.Thread(target=each_kind_once) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

print(json.dumps([[found.number, found.bytes] for found in map(allocations_of, [{calls}])]))
"""


def counted_by_hand(calls: str) -> list[list[float]]:
    run = subprocess.run(
        [sys.executable, "-c", BY_HAND.format(calls=calls)],
        env=counting_environment(dict(os.environ)),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: list[list[float]] = json.loads(run.stdout)
    return found


def test_each_function_that_allocates_counts_with_its_bytes_also_in_other_threads() -> None:
    nothing, once, threads = counted_by_hand("nothing, each_kind_once, in_four_threads")
    assert nothing == [0, 0]
    assert once == [7, 1000 + 2000 + 1 + 3000 + 4096 + 6400 + 7000]
    assert threads[0] >= 4 * once[0]  # and what starting a thread takes
    assert threads[1] >= 4 * once[1]


USED = """
import sys
import numpy as np
{preparation}
for _ in range(int(sys.argv[1])):
    {call}
"""


@pytest.mark.slow_but("np.ones")
@pytest.mark.parametrize(
    ("preparation", "call"),
    [
        ("a = np.ones(50_000)", "a + a"),
        ("import json; text = json.dumps(list(range(200)))", "json.loads(text * 1)"),
        ("a = np.random.default_rng(0).standard_normal((40, 40))", "np.linalg.eigvalsh(a)"),
    ],
)
def test_a_program_allocates_as_the_c_librarys_own_tool_counts(preparation: str, call: str) -> None:
    """``libmemusage`` of glibc counts the calls of a whole program; those of a call are the difference of two runs."""
    tool = next(Path("/usr/lib").glob("*-linux-gnu/libmemusage.so"), None)
    if tool is None:
        pytest.skip("needs libmemusage.so, which Debian's libc-devtools has")
    totals = {calls: _total_by(tool, USED.format(preparation=preparation, call=call), calls) for calls in (200, 1200)}
    by_tool = (totals[1200] - totals[200]) / 1000
    code = (
        f"import numpy as np\nfrom fairlap.scenarios.untimed.allocations import allocations_of\n{preparation}\n"
        f"print(allocations_of(lambda: {call}).number)"
    )
    environment = counting_environment(dict(os.environ))
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(run.stdout) >= 1
    assert float(run.stdout) == pytest.approx(by_tool, abs=0.1)


def _total_by(tool: Path, program: str, calls: int) -> int:
    environment = {**os.environ, "LD_PRELOAD": str(tool), "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", program, str(calls)], env=environment, capture_output=True, text=True, check=True
    )
    plain = re.sub(r"\x1b\[[\d;]*m", "", run.stderr)
    found = re.findall(r"^\s*(?:malloc|realloc|calloc)\|\s*(\d+)", plain, re.MULTILINE)
    assert len(found) == 3, plain
    return sum(map(int, found))


def test_a_process_without_the_library_says_so() -> None:
    with pytest.raises(NotAvailable):
        allocations_of(lambda: None)


@pytest.mark.usefixtures("example")
def test_contestants_of_a_race_have_theirs_in_row_and_comparison() -> None:
    plan = msgspec.structs.replace(plan_of("example,example:slow", blocks=2), count_allocations=True)
    processes = raced(plan)
    assert {each.outcome for each in processes} == {"finished"}
    assert all(each.allocations is not None and each.allocations.number >= 0 for each in processes)
    assert all("peak" in each.memory.bytes for each in processes)
    by_name = {name: [each for each in processes if each.contestant == name] for name in ("example", "example:slow")}
    judged = judged_calls(processes)
    compared = compare_other_quantities(plan.works[0], by_name, judged.metric)
    [number] = [each for each in compared if each.metric == verdict.ALLOCATIONS]
    assert not number.without
    assert len(number.comparisons) == 1
    cells = allocation_columns(ContestantResult("example", "as-found", tuple(by_name["example"]), judged))
    assert cells["allocations"].value.value == by_name["example"][0].allocations.number  # type: ignore[union-attr]


@pytest.mark.usefixtures("example")
def test_without_being_asked_nothing_is_counted() -> None:
    [process] = raced(plan_of("example"))
    assert process.allocations is None
    cells = allocation_columns(ContestantResult("example", "as-found", (process,), judged_calls([process])))
    assert cells["allocations"].value is None
    assert "--count-allocations" in cells["allocations"].absent


def test_a_requirement_on_them_has_them_counted() -> None:
    plan = plan_of("example,example:slow")
    assert with_required(plan, verdict.required_changes_of(["allocations<=+0%"])).count_allocations
    assert with_required(plan, verdict.required_changes_of(["allocated<=+0%"])).count_allocations
    assert not with_required(plan, verdict.required_changes_of(["memory_peak<=+2%"])).count_allocations


def test_allocators_that_c_plus_plus_calls_past_malloc_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = msgspec.structs.replace(plan_of("torch:allocator=jemalloc"), count_allocations=True)
    with pytest.raises(InvalidRequest, match="jemalloc"):
        require_countable(plan)
    require_countable(msgspec.structs.replace(plan, count_allocations=False))
    monkeypatch.setattr("fairlap.race.processes.counted_allocations.LIBRARY", Path("/nowhere/library.so"))
    with pytest.raises(InvalidRequest, match=r"library\.so"):
        require_countable(msgspec.structs.replace(plan_of("example"), count_allocations=True))
