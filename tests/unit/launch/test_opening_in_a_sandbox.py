"""Attacks of model files come to nothing where the checks of their kinds are absent, and real models open as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from fairlap.machine.sandbox import has_seccomp, landlock_version
from fairlap.models.sources.bundle import BUNDLE
from fairlap.models.sources.opening import Order, Outcome
from fairlap.request.source import Source, shapes_in
from hostile_files import (
    plain_program,
    program_of_code,
    saved_model_that,
    saved_model_that_reads,
    saved_model_that_writes,
    script_that_writes,
)
from onnx_files import source_of

SEEDS = {"inputs": 1, "changed": 2}

sandboxed = pytest.mark.skipif(
    landlock_version() < 3 or not has_seccomp(), reason="needs Linux 6.2 or later with Landlock and seccomp"
)
WITHOUT_CHECKS = """
import sys
from fairlap.models.sources import confinement, opening
from fairlap.models.sources.kinds import saved_model, torch_files
torch_files.require_harmless_program = lambda file: None
torch_files._nothing_unpickled = lambda trust, name: __import__("contextlib").nullcontext()
torch_files.TorchFile.check = classmethod(lambda cls, source: None)
saved_model.require_harmless = lambda folder: None
if sys.argv[1] == "without":
    confinement.confine = lambda *_, **__: None
opening.main()
"""


def outcome(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str = "with") -> Outcome:
    """In a process as fairlap starts it, without the checks."""
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / sandbox))
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_CHECKS, sandbox],
        input=msgspec.json.encode(Order(source, SEEDS, str(scratch))),
        capture_output=True,
        start_new_session=True,
    )
    return msgspec.json.decode(done.stdout, type=Outcome) if done.stdout else Outcome(code="E_SOURCE", message="ended")


@sandboxed
@pytest.mark.parametrize("sandbox", ["with", "without"])
def test_code_in_a_program_runs_and_reaches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    target = tmp_path / "target"
    code = f"__import__('os').system('touch {target}') or __import__('pathlib').Path({str(target)!r}).touch()"
    outcome(source_of(program_of_code(tmp_path / "evil.pt2", code)), tmp_path, monkeypatch, sandbox)
    assert target.exists() == (sandbox == "without")


@sandboxed
@pytest.mark.parametrize("sandbox", ["with", "without"])
def test_torchscript_that_opens_a_file_creates_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    target = tmp_path / "target"
    file = script_that_writes(tmp_path / "evil.pt", target)
    outcome(source_of(file, shapes=shapes_in("x:2x8")), tmp_path, monkeypatch, sandbox)
    assert target.exists() == (sandbox == "without")


@sandboxed
@pytest.mark.parametrize("sandbox", ["with", "without"])
def test_a_saved_model_writes_and_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str) -> None:
    pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    target, secret = tmp_path / "target", tmp_path / "secret"
    secret.write_bytes(b"four")
    outcome(source_of(saved_model_that_writes(tmp_path / "writes", target)), tmp_path, monkeypatch, sandbox)
    assert target.exists() == (sandbox == "without")
    read = outcome(source_of(saved_model_that_reads(tmp_path / "reads", secret)), tmp_path, monkeypatch, sandbox)
    assert bool(read.code) == (sandbox == "with")


def test_models_of_each_framework_open_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    found = outcome(source_of(plain_program(tmp_path / "plain.pt2")), tmp_path, monkeypatch)
    assert (Path(found.folder) / BUNDLE).is_file(), found
    pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    folder = saved_model_that(tmp_path / "net", lambda x: x * 2.0)
    found = outcome(source_of(folder), tmp_path, monkeypatch)
    assert (Path(found.folder) / BUNDLE).is_file(), found
