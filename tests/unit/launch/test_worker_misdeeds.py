"""Whatever a contestant does to its process, its outcome is classified and no process is left."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import NotAvailable
from fairlap.launch import worker_process
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_lost import LossOutcome, OomKills, WorkerLost, loss_from_status, oom_kills, under_a_limit
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.worker.failure import failure
from fairlap.worker.guardian import living_processes
from machine_marks import needs_proc
from workers_of_fake import Files, environment, nothing_left_of, whole_life

pytestmark = [pytest.mark.sanitized, needs_proc]

SHORT_S = 0.5
_ANOTHER_VERSION = """import os, sys
os.write(int(sys.argv[4]), b'{"type":"hello","protocol":99,"language":"x","pid":1}\\n')"""
ENOUGH_FOR_IMPORTS_S = 4.0


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path).write()


def lost(files: Files, variant: str, within_s: float = 120.0) -> WorkerLost:
    how = whole_life(files, variant, within_s=within_s)
    assert how is not None
    return how


@pytest.mark.slow_but(
    "segfault@call",
    "daemon_and_crash@build",
    "raise_memory@call",
    "bad_alloc@call",
    "send_garbage@build",
    "send_too_few",
    "send_an_endless_line",
    "leave@import",
    "raise_plainly@build",
    "raise_torn",
    "raise_missing",
    "refuse@build",
)
@pytest.mark.parametrize(
    ("variant", "code", "phase", "value"),
    [
        ("segfault@import", "E_CRASH", "import", "SIGSEGV"),
        ("segfault@build", "E_CRASH", "build", "about to go wrong"),  # what it printed last
        ("segfault@call", "E_CRASH", "first_call", "SIGSEGV"),
        ("abort@build", "E_CRASH", "build", "SIGABRT"),
        ("killed@call", "E_CRASH", "first_call", "SIGKILL"),
        ("interrupt@call", "E_CRASH", "first_call", "SIGINT"),
        ("stranger_and_crash@build", "E_CRASH", "build", "SIGKILL"),
        ("daemon_and_crash@build", "E_CRASH", "build", ""),  # the daemon holds the pipes open
        ("raise_memory@call", "E_MEMORY", "first_call", ""),
        ("raise_exhausted@call", "E_MEMORY", "first_call", ""),
        ("bad_alloc@call", "E_MEMORY", "first_call", ""),
        ("close_pipe@build", "E_PROTOCOL", "build", ""),
        ("send_garbage@build", "E_PROTOCOL", "build", "HTTP/1.1 400 Bad Request"),
        ("send_a_word_too_many@build", "E_PROTOCOL", "build", "answered"),
        ("send_too_few_samples@build", "E_PROTOCOL", "build", "15 bytes"),
        ("send_an_endless_line@build", "E_PROTOCOL", "build", "xxxx"),
        ("leave@import", "E_EXIT", "import", "status 3"),
        ("leave_quietly@import", "E_EXIT", "import", "status 0"),
        ("leave_with_words@import", "E_EXIT", "import", "libfoo.so.7"),
        ("raise_plainly@build", "E_EXCEPTION", "build", "RuntimeError: no kernel for this"),
        ("raise_plainly@call", "E_EXCEPTION", "first_call", "RuntimeError: no kernel for this"),
        ("raise_torn@build", "E_EXCEPTION", "build", "Torn"),
        ("raise_missing@import", "E_EXCEPTION", "import", "no_such_framework_at_all"),
        ("refuse@build", "E_UNSUPPORTED", "build", ""),
        ("warp", "E_UNSUPPORTED", "fairlap", "warp"),  # no such variant
    ],
)
def test_every_way_to_fail_has_its_code_its_phase_and_the_value_that_explains_it(
    files: Files, variant: str, code: str, phase: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if code == "E_PROTOCOL":  # one of them closes its pipe and runs on
        monkeypatch.setattr(worker_process, "_END_AFTER_LAST_MESSAGE_S", 0.2)
    how = lost(files, variant)
    assert (how.code, how.phase) == (code, phase)
    assert value in how.message
    assert len(how.message) < 420  # long texts of strangers are cut


def test_a_real_segmentation_fault_leaves_its_place_in_the_code(files: Files) -> None:
    how = lost(files, "real_segfault@compile")
    assert (how.code, how.phase) == ("E_CRASH", "compile")
    assert "real_segfault" in how.details


@pytest.mark.slow
@pytest.mark.parametrize("place", ["import", "compile"])
def test_a_hang_while_preparing_ends_at_the_time_limit_and_its_phase_is_named(files: Files, place: str) -> None:
    how = lost(files, f"hang@{place}", ENOUGH_FOR_IMPORTS_S)
    assert (how.code, how.phase) == ("E_TIMEOUT", place)


@pytest.mark.slow_but("bind")
@pytest.mark.parametrize(("place", "phase"), [("bind", "bind"), ("call", "first_call")])
def test_a_hang_in_a_call_ends_at_the_time_limit_and_its_phase_is_named(files: Files, place: str, phase: str) -> None:
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        worker.prepare(files.request(f"hang@{place}"), within_s=60)
        with pytest.raises(WorkerLost) as how:
            worker.answer("inputs", files.folder / "answer.safetensors", within_s=SHORT_S)
    assert (how.value.code, how.value.phase) == ("E_TIMEOUT", phase)


@pytest.mark.slow_but("hang_in_native_code")
@pytest.mark.parametrize("variant", ["hang_in_native_code@build", "print_for_ever@build"])
def test_what_never_returns_to_the_interpreter_or_never_stops_printing_ends_too(files: Files, variant: str) -> None:
    assert lost(files, variant, SHORT_S).code == "E_TIMEOUT"


@pytest.mark.slow
def test_memory_up_to_a_limit_is_out_of_memory(files: Files) -> None:
    how = whole_life(files, "eat_memory@build", memory_limit_bytes=2**29)
    assert how is not None
    assert (how.code, how.phase) == ("E_MEMORY", "build")


@pytest.mark.slow
def test_a_limit_that_is_not_reached_hurts_nobody(files: Files) -> None:
    assert whole_life(files, "", memory_limit_bytes=8 * 2**30) is None


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("exit", "it exited with status 1 in import; last output: libgomp: Thread creation failed: Resource ..."),
        ("failed", "ImportError: libtorch_cpu.so: failed to map segment from shared object (in import)"),
        ("failed", "FeedingFailed: Resource temporarily unavailable (in feed)"),
        ("failed", "RuntimeError: can't start new thread (in build)"),
        ("crash", "it crashed with SIGABRT in build; last output: what():  std::bad_alloc"),
        ("failed", "OSError: [Errno 12] Cannot allocate memory (in build)"),
        ("out_of_memory", "the kernel killed it in build because memory ran out"),
    ],
)
def test_a_lack_of_memory_under_a_limit_is_out_of_memory_and_names_the_limit(
    outcome: LossOutcome, message: str
) -> None:
    how = under_a_limit(WorkerLost(outcome, message, phase="build", details="more"), 700_000_000)
    assert (how.code, how.phase, how.details) == ("E_MEMORY", "build", "more")
    assert "700,000,000" in how.message
    assert message in how.message
    without = WorkerLost(outcome, message)
    assert under_a_limit(without, None) is without


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("failed", "RuntimeError: no kernel for this (in build)"),
        ("failed", "ImportError: libgomp.so.1: cannot allocate memory in static TLS block (in import)"),
        ("crash", "it crashed with SIGSEGV in build"),
        ("timeout", "it did not finish build within 4 s"),
        ("unsupported", "example does not do this"),
    ],
)
def test_a_loss_without_a_sign_of_lacking_memory_is_unchanged_under_a_limit(outcome: LossOutcome, message: str) -> None:
    lost = WorkerLost(outcome, message, details="Traceback (most recent call last):")
    assert under_a_limit(lost, 700_000_000) is lost


def test_a_sign_that_only_the_details_hold_is_added_to_the_message() -> None:
    details = "OSError: [Errno 12] Cannot allocate memory\n\nThe above exception was the direct cause ...\n"
    how = under_a_limit(WorkerLost("failed", "ValueError: no model (in build)", details=details), 10**9)
    assert how.code == "E_MEMORY"
    assert "[Errno 12] Cannot allocate memory" in how.message


def test_a_memory_error_behind_another_exception_is_out_of_memory_and_replaces_advice_on_samples() -> None:
    try:
        try:
            raise MemoryError("std::bad_alloc")
        except MemoryError:
            raise NotAvailable("there is not enough memory for the samples; ask for fewer") from None
    except NotAvailable as error:
        failed = failure("first_call", error)
    assert (failed.kind, failed.message) == ("out_of_memory", "MemoryError: std::bad_alloc")
    stranger = ValueError("no model")
    stranger.__cause__ = MemoryError()
    assert failure("build", stranger).kind == "out_of_memory"


def test_a_sigkill_with_a_rise_of_the_kernels_counter_is_out_of_memory() -> None:
    before = OomKills(tuple(count - 1 for count in oom_kills().counted))
    assert loss_from_status(-signal.SIGKILL, "build", b"", before).code == "E_MEMORY"
    assert "1.5 GiB" in loss_from_status(-signal.SIGKILL, "build", b"", before, 3 * 2**29).message


@pytest.mark.slow
def test_memory_that_runs_out_for_real_is_out_of_memory(files: Files) -> None:
    group = _group_of_little_memory()
    if group is None:
        pytest.skip("needs a control group for memory that this user may make")
    into_group = ("/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    try:
        with nothing_left_of(WorkerProcess((*into_group, *python_worker()), environment=environment())) as worker:
            with pytest.raises(WorkerLost) as how:
                worker.prepare(files.request("eat_memory@build"), within_s=60)
            assert how.value.code == "E_MEMORY"
    finally:
        group.rmdir()


def _group_of_little_memory() -> Path | None:
    for top, limit in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        group = Path(top) / f"fairlap-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / limit).exists() and (group / "cgroup.procs").exists():
            (group / limit).write_text(str(300 * 2**20))
            return group
        group.rmdir()
    return None


def test_not_a_number_is_handed_over_for_the_check_to_find(files: Files) -> None:
    assert whole_life(files, "nan") is None
    assert np.isnan(safetensors.read(files.folder / "answer.safetensors")["y"]).all()


def test_stray_prints_break_nothing_and_their_end_is_kept(files: Files, tmp_path: Path) -> None:
    kept = tmp_path / "prints.txt"
    worker = WorkerProcess(python_worker(), environment=environment(), prints_file=kept)
    with nothing_left_of(worker):
        worker.prepare(files.request("print_rubbish@build"), within_s=60)
        worker.quit()
    assert kept.stat().st_size == 64 * 2**10
    assert kept.read_text().endswith("a warning\n")


@pytest.mark.slow_but("daemon")
@pytest.mark.parametrize("misdeed", ["child_in_its_own_group", "daemon", "stranger"])
def test_what_a_contestant_leaves_running_is_ended_with_it(files: Files, misdeed: str) -> None:
    assert whole_life(files, f"{misdeed}@build") is None


@pytest.mark.parametrize(
    ("command", "code", "value"),
    [
        (("/no/such/program",), "E_START", "/no/such/program"),
        (("/bin/true",), "E_EXIT", "status 0"),
        (("/bin/sh", "-c", "sleep 100"), "E_TIMEOUT", "0.3 s"),
        (
            (sys.executable, "-c", _ANOTHER_VERSION),
            "E_PROTOCOL",
            "version 99",
        ),
    ],
)
def test_a_program_that_is_not_a_worker_is_refused(command: tuple[str, ...], code: str, value: str) -> None:
    with pytest.raises(WorkerLost) as how:
        WorkerProcess(command, environment={}, start_s=0.3 if "sleep 100" in command else 120)
    assert how.value.code == code
    assert value in how.value.message


def test_a_worker_that_is_killed_before_it_is_asked_is_a_crash(files: Files) -> None:
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerLost) as how:
            worker.prepare(files.request(), within_s=60)
        assert (how.value.code, how.value.phase) == ("E_CRASH", "prepare")
        assert living_processes(worker.session, worker.token) == []


@pytest.mark.parametrize("phase", ["fairlap", "numpy", "build"])
def test_a_sigkill_without_a_lack_of_memory_is_from_outside_and_says_when(phase: str) -> None:
    lost = loss_from_status(-signal.SIGKILL, phase, b"", oom_kills())
    assert (lost.outcome, lost.phase) == ("crash", phase)
    assert "crashed" not in lost.message
    assert not lost.message.endswith("in fairlap")
