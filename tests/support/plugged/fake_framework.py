"""A framework in plain NumPy. Its variants do to their process what bad frameworks do."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

CALLED_WITH_DONE = "asynchronous"


class Fake(Framework):
    name = "fake"
    packages = ("fake-framework",)
    module = "fake_framework"
    modes: ClassVar[tuple[str, ...]] = ("infer",)

    variants: ClassVar[tuple[str, ...]] = ()  # filled below: one for every misdeed

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        self.wanted = wanted
        for name in ("import", "build", "compile"):
            with phase(name):
                self._misbehave(name)
        weight = work.weights["w"]

        def bind(inputs: Arrays) -> Callable[[], Any]:
            self._misbehave("bind")
            x = inputs["x"]

            def call() -> Any:
                self._misbehave("call")
                return x @ weight

            return call if wanted.variant in CALLS else lambda: x @ weight

        def outputs(result: Any) -> dict[str, Any]:
            if wanted.variant == "nan":
                return {"y": np.full_like(result, np.nan)}
            return {"y": result}

        return Contestant(
            bind=bind,
            done=(lambda result: result) if wanted.variant == CALLED_WITH_DONE else None,
            outputs=outputs,
            weights=lambda: dict(work.weights),
            in_force={"threads": str(wanted.threads), "labels": str(work.labels)},
            memory_bytes=lambda: {"live": 12},
        )

    def version(self) -> str:
        return "1.2"

    def _misbehave(self, where: str) -> None:
        misdeed, _, place = self.wanted.variant.partition("@")
        if place == where:
            MISDEEDS[misdeed](self.wanted)


def reply_pipe() -> int:
    return int(sys.argv[sys.argv.index("--write") + 1])


def segfault(_: Settings) -> None:
    print("about to go wrong", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def real_segfault(_: Settings) -> None:
    ctypes.string_at(8)


def abort(_: Settings) -> None:
    os.abort()


def bad_alloc(_: Settings) -> None:
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n")
    os.abort()


def killed(_: Settings) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(_: Settings) -> None:
    time.sleep(1000)


def hang_in_native_code(_: Settings) -> None:
    ctypes.PyDLL(None).sleep(1000)  # keeps the interpreter's lock


def eat_memory(_: Settings) -> None:
    eaten = [np.ones(2**23) for _ in range(32)]  # 2 GiB, should nothing stop it
    raise RuntimeError(f"{len(eaten)} arrays had room")


def pass_through_memory(_: Settings) -> None:
    """Map 200 MiB anonymously, touch them and give them back."""
    with mmap.mmap(-1, 200 * 2**20, flags=mmap.MAP_PRIVATE) as memory:
        memory.write(b"x" * len(memory))


def share_memory(_: Settings) -> None:
    memory = mmap.mmap(-1, 50 * 2**20)  # shared, as pinned memory is
    memory.write(b"x" * len(memory))
    KEPT.append(memory)


def keep_a_large_child(_: Settings) -> None:
    code = "x = b'x' * (60 << 20); print(flush=True); import time; time.sleep(1000)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    KEPT.append(child)


KEPT: list[object] = []


def print_rubbish(_: Settings) -> None:
    print('{"type": "bye"}\n' * 20_000, flush=True)
    print("a warning\n" * 20_000, end="", file=sys.stderr, flush=True)


def print_for_ever(_: Settings) -> None:
    while True:
        os.write(1, b"rubbish " * 1000)


def close_pipe(_: Settings) -> None:
    os.close(reply_pipe())
    time.sleep(1000)


def child_in_its_own_group(_: Settings) -> None:
    subprocess.Popen(["sleep", "1000"], process_group=0)


def daemon(_: Settings) -> None:
    """Leaves the session and loses its parent, as daemons do, and holds every descriptor."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
    os.wait()


def stranger(_: Settings) -> None:
    """Start a daemon that has neither session nor environment of its worker; its arguments are for the test."""
    open_until_it_runs, held = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(
                sys.executable, [sys.executable, "-S", "-c", "while True: pass", os.environ["FAIRLAP_WORKER"]], {}
            )
        os._exit(0)
    os.wait()
    os.close(held)
    os.read(open_until_it_runs, 1)
    os.close(open_until_it_runs)


def stranger_and_crash(wanted: Settings) -> None:
    stranger(wanted)
    os.kill(os.getpid(), signal.SIGKILL)


def stranger_and_crash_of_the_guardian(wanted: Settings) -> None:
    """Nothing that was started below the guardian is handed to it any more."""
    stranger(wanted)
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def daemon_and_crash(wanted: Settings) -> None:
    daemon(wanted)
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(_: Settings) -> None:
    sys.exit(3)


def leave_quietly(_: Settings) -> None:
    os._exit(0)


def leave_with_words(_: Settings) -> None:
    print("libfoo.so.7: cannot open shared object file", file=sys.stderr, flush=True)
    os._exit(1)


class Torn(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def raise_torn(_: Settings) -> None:
    raise Torn


def raise_plainly(_: Settings) -> None:
    raise RuntimeError("no kernel for this\nand more")


def raise_missing(_: Settings) -> None:
    import_module("no_such_framework_at_all")


def raise_memory(_: Settings) -> None:
    raise MemoryError


def raise_exhausted(_: Settings) -> None:
    raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 68719476736 bytes")


def refuse(_: Settings) -> None:
    raise Unsupported("fake computes no such thing")


def send_garbage(_: Settings) -> None:
    os.write(reply_pipe(), b"\x00\xffHTTP/1.1 400 Bad Request\n")
    time.sleep(1000)


def send_a_word_too_many(_: Settings) -> None:
    os.write(reply_pipe(), b'{"type":"answered","seconds":1}\n')
    time.sleep(1000)


def send_too_few_samples(_: Settings) -> None:
    os.write(
        reply_pipe(),
        b'{"type":"measured","quantities":[{"name":"wall_ns","count":2,"method":"m","resolution_ns":1}],'
        b'"calls_per_sample":1,"stopped_by":"samples","elapsed_s":1,"bytes":15}\n',
    )
    time.sleep(1000)


def send_an_endless_line(_: Settings) -> None:
    with contextlib.suppress(OSError):
        while True:
            os.write(reply_pipe(), b"x" * 2**16)


def interrupt(_: Settings) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)


MISDEEDS: dict[str, Callable[[Settings], None]] = {
    each.__name__: each
    for each in (
        segfault,
        real_segfault,
        abort,
        bad_alloc,
        killed,
        hang,
        hang_in_native_code,
        eat_memory,
        pass_through_memory,
        share_memory,
        keep_a_large_child,
        print_rubbish,
        print_for_ever,
        close_pipe,
        child_in_its_own_group,
        daemon,
        daemon_and_crash,
        stranger,
        stranger_and_crash,
        stranger_and_crash_of_the_guardian,
        leave,
        leave_quietly,
        leave_with_words,
        raise_torn,
        raise_plainly,
        raise_missing,
        raise_memory,
        raise_exhausted,
        refuse,
        send_garbage,
        send_a_word_too_many,
        send_too_few_samples,
        send_an_endless_line,
        interrupt,
    )
}
PLACES = ("import", "build", "compile", "bind", "call")
CALLS = tuple(f"{misdeed}@call" for misdeed in MISDEEDS)
Fake.variants = ("", "nan", CALLED_WITH_DONE, *(f"{misdeed}@{place}" for misdeed in MISDEEDS for place in PLACES))
