"""Whatever a contestant does to its process, its outcome is clear and no process is left."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import NotAvailable
from fairlap.launch.worker_lost import LossOutcome, OomKills, WorkerLost, ended, oom_kills, under_a_limit
from fairlap.launch.worker_process import WorkerProcess, python_worker
from fairlap.models import safetensors
from fairlap.worker.failure import failure
from fairlap.worker.guardian import living_processes
from workers_of_fake import Files, environment, nothing_left_of, whole_life

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for what is left under /proc"),
]

SHORT_S = 1.0
ENOUGH_FOR_IMPORTS_S = 4.0


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path).write()


def lost(files: Files, variant: str, within_s: float = 20.0) -> WorkerLost:
    how = whole_life(files, variant, within_s=within_s)
    assert how is not None
    return how


@pytest.mark.parametrize("place", ["import", "build", "call"])
def test_a_crash_names_its_signal_and_where_it_was(files: Files, place: str) -> None:
    how = lost(files, f"segfault@{place}")
    assert how.outcome == "crash"
    told = {"call": "first_call"}.get(place, place)
    assert how.message == f"it crashed with SIGSEGV in {told}; it said last: about to go wrong"
    assert how.phase == told


def test_a_real_segmentation_fault_leaves_its_place_in_the_code(files: Files) -> None:
    how = lost(files, "real_segfault@compile")
    assert how.outcome == "crash"
    assert "SIGSEGV in compile" in how.message
    assert "real_segfault" in how.details


def test_an_abort_is_a_crash(files: Files) -> None:
    assert "SIGABRT in build" in lost(files, "abort@build").message


def test_a_killed_worker_is_a_crash_when_memory_was_not_short(files: Files) -> None:
    how = lost(files, "killed@call")
    assert (how.outcome, "SIGKILL" in how.message) == ("crash", True)


@pytest.mark.parametrize("place", ["import", "compile"])
def test_a_hang_while_preparing_ends_at_the_time_limit_and_its_phase_is_named(files: Files, place: str) -> None:
    how = lost(files, f"hang@{place}", ENOUGH_FOR_IMPORTS_S)
    assert (how.outcome, how.message) == ("timeout", f"it did not finish {place} (prepare) within 4 s")


@pytest.mark.parametrize(("place", "told"), [("bind", "bind"), ("call", "first_call")])
def test_a_hang_in_a_call_ends_at_the_time_limit_and_its_phase_is_named(files: Files, place: str, told: str) -> None:
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        worker.prepare(files.request(f"hang@{place}"), within_s=60)
        with pytest.raises(WorkerLost) as how:
            worker.answer("inputs", files.folder / "answer.safetensors", within_s=SHORT_S)
    assert (how.value.outcome, how.value.message) == ("timeout", f"it did not finish {told} (answer) within 1 s")


def test_a_hang_in_native_code_that_keeps_the_interpreter_ends_too(files: Files) -> None:
    assert lost(files, "hang_in_native_code@build", SHORT_S).outcome == "timeout"


def test_memory_up_to_a_limit_is_out_of_memory(files: Files) -> None:
    how = whole_life(files, "eat_memory@build", memory_limit_bytes=2**30)
    assert how is not None
    assert how.outcome == "out_of_memory"
    assert "Unable to allocate" in how.message
    assert how.message.endswith("(in build)")


def test_a_limit_that_is_not_reached_hurts_nobody(files: Files) -> None:
    assert whole_life(files, "", memory_limit_bytes=8 * 2**30) is None


@pytest.mark.parametrize("misdeed", ["raise_memory", "raise_exhausted", "bad_alloc"])
def test_frameworks_own_ways_to_say_that_memory_ran_out_are_understood(files: Files, misdeed: str) -> None:
    assert lost(files, f"{misdeed}@call").outcome == "out_of_memory"


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("exit", "it exited with status 1 in import; it said last: libgomp: Thread creation failed: Resource ..."),
        ("failed", "ImportError: libtorch_cpu.so: failed to map segment from shared object (in import)"),
        ("failed", "FeedingFailed: of 1 threads only 0 could be started: Resource temporarily unavailable (in feed)"),
        ("failed", "RuntimeError: can't start new thread (in build)"),
        ("crash", "it crashed with SIGABRT in build; it said last: what():  std::bad_alloc"),
        ("failed", "OSError: [Errno 12] Cannot allocate memory (in build)"),
        ("out_of_memory", "the kernel killed it in build: memory ran out"),
    ],
)
def test_a_lack_of_memory_under_a_limit_is_out_of_memory_and_names_the_limit(
    outcome: LossOutcome, message: str
) -> None:
    how = under_a_limit(WorkerLost(outcome, message, phase="build", details="more"), 700_000_000)
    assert (how.outcome, how.phase, how.details) == ("out_of_memory", "build", "more")
    assert how.message == f"it needs more than the limit of 700,000,000 bytes: {message}"
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
def test_what_does_not_tell_of_memory_stays_what_it_is_under_a_limit(outcome: LossOutcome, message: str) -> None:
    lost = WorkerLost(outcome, message, details="Traceback (most recent call last):")
    assert under_a_limit(lost, 700_000_000) is lost


def test_a_sign_that_only_the_details_hold_is_told_behind_the_message() -> None:
    details = "OSError: [Errno 12] Cannot allocate memory\n\nThe above exception was the direct cause ...\n"
    how = under_a_limit(WorkerLost("failed", "ValueError: no model (in build)", details=details), 10**9)
    assert how.outcome == "out_of_memory"
    assert how.message.endswith("no model (in build); before that: OSError: [Errno 12] Cannot allocate memory")


def test_a_memory_error_behind_another_exception_is_out_of_memory_and_advises_nobody_to_take_fewer_samples() -> None:
    try:
        try:
            raise MemoryError("std::bad_alloc")
        except MemoryError:
            raise NotAvailable("there is not enough memory for the samples; ask for fewer") from None
    except NotAvailable as error:
        told = failure("first_call", error)
    assert (told.kind, told.message) == ("out_of_memory", "MemoryError: std::bad_alloc")
    stranger = ValueError("no model")
    stranger.__cause__ = MemoryError()
    assert failure("build", stranger).message == "ValueError: no model; it came of MemoryError"


def test_a_sigkill_with_a_rise_of_the_kernels_counter_is_out_of_memory() -> None:
    before = OomKills(tuple(count - 1 for count in oom_kills().counted))
    how = ended(-signal.SIGKILL, "build", b"", before)
    assert (how.outcome, how.message) == ("out_of_memory", "the kernel killed it in build: memory ran out")


def test_memory_that_runs_out_for_real_is_out_of_memory(files: Files) -> None:
    group = _group_of_little_memory()
    if group is None:
        pytest.skip("needs a control group for memory that this user may make")
    into_group = ("/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    try:
        with nothing_left_of(WorkerProcess((*into_group, *python_worker()), environment=environment())) as worker:
            with pytest.raises(WorkerLost) as how:
                worker.prepare(files.request("eat_memory@build"), within_s=60)
            assert how.value.outcome == "out_of_memory"
            assert how.value.message == "the kernel killed it in build: memory ran out"
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
        worker.prepare(files.request("print_rubbish@build"), within_s=20)
        worker.quit()
    assert kept.stat().st_size == 64 * 2**10
    assert kept.read_text().endswith("a warning\n")


def test_prints_without_end_end_at_the_time_limit(files: Files) -> None:
    assert lost(files, "print_for_ever@build", SHORT_S).outcome == "timeout"


def test_a_closed_pipe_is_a_breach_of_the_protocol(files: Files) -> None:
    how = lost(files, "close_pipe@build")
    assert (how.outcome, how.message) == ("protocol", "it closed its pipe in build and ran on")


@pytest.mark.parametrize("misdeed", ["child_in_its_own_group", "daemon"])
def test_what_a_contestant_leaves_running_is_ended_with_it(files: Files, misdeed: str) -> None:
    assert whole_life(files, f"{misdeed}@build") is None


def test_a_crash_is_seen_although_a_daemon_holds_the_pipes_open(files: Files) -> None:
    assert lost(files, "daemon_and_crash@build").outcome == "crash"


@pytest.mark.parametrize(
    ("misdeed", "message"),
    [
        ("leave", "it exited with status 3 in import"),
        ("leave_quietly", "it exited with status 0 in import"),
        ("leave_with_words", "it exited with status 1 in import; it said last: libfoo.so.7: cannot open shared obj"),
    ],
)
def test_leaving_unasked_is_an_exit_with_its_status(files: Files, misdeed: str, message: str) -> None:
    how = lost(files, f"{misdeed}@import")
    assert how.outcome == "exit"
    assert how.message.startswith(message)


@pytest.mark.parametrize(
    ("misdeed", "place", "message"),
    [
        ("raise_plainly", "build", "RuntimeError: no kernel for this (in build)"),
        ("raise_plainly", "call", "RuntimeError: no kernel for this (in first_call)"),
        ("raise_torn", "build", "Torn (its text cannot be shown) (in build)"),
        ("raise_missing", "import", "ModuleNotFoundError: No module named 'no_such_framework_at_all' (in import)"),
    ],
)
def test_an_exception_is_told_with_its_type_and_place(files: Files, misdeed: str, place: str, message: str) -> None:
    how = lost(files, f"{misdeed}@{place}")
    assert (how.outcome, how.message) == ("failed", message)
    assert how.details == "" or misdeed in how.details


def test_what_a_framework_cannot_do_is_unsupported(files: Files) -> None:
    how = lost(files, "refuse@build")
    assert (how.outcome, how.message) == ("unsupported", "fake computes no such thing")


def test_a_variant_that_does_not_exist_is_unsupported(files: Files) -> None:
    how = lost(files, "warp")
    assert how.outcome == "unsupported"
    assert how.message.startswith("fake has no variant warp; it has (none), nan")


@pytest.mark.parametrize(
    ("misdeed", "quoted"),
    [
        ("send_garbage", "HTTP/1.1 400 Bad Request"),
        ("send_a_word_too_many", "answered, which nobody asked for"),
        ("send_too_few_samples", "15 bytes"),
        ("send_an_endless_line", "a line of over 64 MiB: 'xxxx"),
    ],
)
def test_rubbish_in_the_pipe_is_a_breach_of_the_protocol_and_quoted(files: Files, misdeed: str, quoted: str) -> None:
    how = lost(files, f"{misdeed}@build")
    assert how.outcome == "protocol"
    assert quoted in how.message
    assert len(how.message) < 400


def test_an_interrupted_worker_is_a_crash_by_that_signal(files: Files) -> None:
    assert "SIGINT in call" in lost(files, "interrupt@call").message.replace("first_call", "call")


def test_a_worker_that_cannot_be_started_has_failed() -> None:
    with pytest.raises(WorkerLost, match="/no/such/program cannot be started: No such file or directory") as how:
        WorkerProcess(("/no/such/program",), environment={})
    assert how.value.outcome == "failed"


def test_a_program_that_does_not_speak_has_exited_or_timed_out() -> None:
    with pytest.raises(WorkerLost, match="exited with status 0 in interpreter") as how:
        WorkerProcess(("/bin/true",), environment={})
    assert how.value.outcome == "exit"
    with pytest.raises(WorkerLost, match=r"did not finish interpreter within 0\.3 s") as how:
        WorkerProcess(("/bin/sh", "-c", "sleep 100"), environment={}, start_s=0.3)
    assert how.value.outcome == "timeout"


def test_another_version_of_the_protocol_is_refused() -> None:
    code = """import os, sys; os.write(int(sys.argv[4]), b'{"type":"hello","protocol":99,"language":"x","pid":1}\\n')"""
    with pytest.raises(WorkerLost, match="version 99"):
        WorkerProcess((sys.executable, "-c", code), environment={})


def test_a_worker_that_is_killed_before_it_is_asked_is_a_crash(files: Files) -> None:
    with nothing_left_of(WorkerProcess(python_worker(), environment=environment())) as worker:
        os.kill(worker.hello.pid, signal.SIGKILL)
        with pytest.raises(WorkerLost, match="SIGKILL in prepare") as how:
            worker.prepare(files.request(), within_s=20)
        assert how.value.outcome == "crash"
        assert living_processes(worker.hello.pid, worker.token) == []
