"""Attacks of model files come to nothing where the checks of their kinds are absent, and real models open as before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from fairlap.explanations import explanations
from fairlap.frameworks.registry import framework_named, framework_names
from fairlap.machine.programs.sandbox import has_seccomp, landlock_version
from fairlap.models.sources.bundle import bundle_in
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.kinds.hugging_face import HuggingFace
from fairlap.models.sources.opening import Order, Outcome
from fairlap.request.fields.source import Source, dims_in, shapes_in
from hostile_files import (
    plain_program,
    program_of_code,
    saved_model_that,
    saved_model_that_reads,
    saved_model_that_writes,
    script_that_writes,
)
from keras_files import lookup
from machine_marks import needs_proc
from onnx_files import BOUND, masked_lookup, source_of
from tflite_files import dense
from transformers_folders import folder_of

SEEDS = {"inputs": 1, "changed": 2}

sandboxed = pytest.mark.skipif(
    landlock_version() < 3 or not has_seccomp(), reason="needs Linux 6.2 or later with Landlock and seccomp"
)
# What the sandbox stops had begun; that it would have come to something without one is shown at length.
EITHER = pytest.mark.parametrize("sandbox", ["with", pytest.param("without", marks=pytest.mark.slow)])
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
@EITHER
def test_code_in_a_program_runs_reaches_nothing_and_is_refused_with_the_model_and_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    target = tmp_path / "target"
    code = f"__import__('pathlib').Path({str(target)!r}).touch() or __import__('os').system('touch {target}')"
    found = outcome(source_of(program_of_code(tmp_path / "evil.pt2", code)), tmp_path, monkeypatch, sandbox)
    assert target.exists() == (sandbox == "without")
    assert (found.code == "E_SANDBOX") == (sandbox == "with")
    if sandbox == "with":
        assert found.code in explanations()
        assert "evil.pt2" in found.message
        assert "--trust" in found.message
        assert "\n" not in found.message


@pytest.mark.slow
@sandboxed
@EITHER
def test_torchscript_that_opens_a_file_creates_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    target = tmp_path / "target"
    file = script_that_writes(tmp_path / "evil.pt", target)
    found = outcome(source_of(file, shapes=shapes_in("x:2x8")), tmp_path, monkeypatch, sandbox)
    assert target.exists() == (sandbox == "without")
    assert (found.code == "E_SANDBOX") == (sandbox == "with")


@pytest.mark.slow
@sandboxed
@pytest.mark.parametrize("sandbox", ["with", "without"])
def test_a_saved_model_writes_and_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str) -> None:
    pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    target, secret = tmp_path / "target", tmp_path / "secret"
    secret.write_bytes(b"four")
    written = outcome(source_of(saved_model_that_writes(tmp_path / "writes", target)), tmp_path, monkeypatch, sandbox)
    assert target.exists() == (sandbox == "without")
    assert (written.code == "E_SANDBOX") == (sandbox == "with")
    read = outcome(source_of(saved_model_that_reads(tmp_path / "reads", secret)), tmp_path, monkeypatch, sandbox)
    assert (read.code == "E_SANDBOX") == (sandbox == "with")


def _onnx(folder: Path) -> Source:
    return source_of(masked_lookup(folder / "model.onnx"), BOUND)


def _program(folder: Path) -> Source:
    return source_of(plain_program(folder / "plain.pt2"))


def _program_of_transformers(folder: Path) -> Source:
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder_of(folder / "bert", "bert"), local_files_only=True)
    model = transformers.BertModel(config).eval()
    ids = {"input_ids": torch.zeros((2, 6), dtype=torch.int64)}
    torch.export.save(torch.export.export(model, (), ids, strict=False), folder / "bert.pt2")
    return source_of(folder / "bert.pt2")


def _script(folder: Path) -> Source:
    import torch

    torch.jit.trace(torch.nn.Linear(8, 4), torch.randn(2, 8)).save(str(folder / "script.pt"))
    return source_of(folder / "script.pt", shapes=shapes_in("input:2x8"), trust=True)


def _saved_model(folder: Path) -> Source:
    return source_of(saved_model_that(folder / "net", lambda x: x * 2.0))


def _keras(folder: Path) -> Source:
    return source_of(lookup(folder / "model.keras"), batch=2)


def _tflite(folder: Path) -> Source:
    return source_of(dense(folder / "model.tflite"), batch=2)


def _of_transformers(folder: Path) -> Source:
    """Make a snapshot in the cache of Hugging Face, whose files are links."""
    snapshot, blobs = (folder / "models--own--bert" / each for each in ("snapshots/1", "blobs"))
    for each in (snapshot, blobs):
        each.mkdir(parents=True)
    for file in folder_of(folder / "bert", "bert", weights=True).iterdir():
        file.rename(blobs / file.name)
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    return Source("hf:bert", f"hf:{snapshot}", str(folder), dims=dims_in("batch=2,sequence=6"))


def _configuration(folder: Path) -> Source:
    file = folder_of(folder / "bert", "bert") / "config.json"
    return Source("hf:config.json", f"hf:{file}", str(folder), dims=dims_in("batch=2,sequence=6"))


KINDS: dict[Callable[[Path], Source], tuple[str, ...]] = {
    _onnx: (),
    _program: ("torch",),
    _program_of_transformers: ("torch", "transformers"),
    _script: ("torch",),
    _saved_model: ("tensorflow",),
    _keras: ("tensorflow", "keras"),
    _tflite: ("ai_edge_litert", "flatbuffers"),
    _of_transformers: ("torch", "transformers"),
    _configuration: ("torch", "transformers"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_each_kind_of_model_opens_as_without_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Callable[[Path], Source]
) -> None:
    for module in KINDS[kind]:
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    source = kind(tmp_path)
    with_it, without = (outcome(source, tmp_path, monkeypatch, sandbox) for sandbox in ("with", "without"))
    assert (with_it.code, with_it.message) == (without.code, without.message) == ("", "")
    inside, outside = (bundle_in(Path(each.folder)) for each in (with_it, without))
    assert {name: (route.name, route.why_not) for name, route in inside.routes.items()} == {
        name: (route.name, route.why_not) for name, route in outside.routes.items()
    }
    assert inside.reference == outside.reference
    assert [notice.code for notice in inside.notices] == [notice.code for notice in outside.notices]


_THREADS = """
import os
from fairlap.models.sources import confinement, opening
def count(*_, **__):
    os.write(1, str(len(os.listdir("/proc/self/task"))).encode())
    os._exit(0)
confinement.confine = count
opening.main()
"""


@pytest.mark.slow_but("starts_a_thread")
@needs_proc
@pytest.mark.parametrize("function", ["", "starts_a_thread"])
def test_no_thread_was_started_before_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """Landlock leaves other threads of the process as they are."""
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "own.py").write_text(
        "import threading\n"
        "def starts_a_thread():\n"
        "    threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "    return {}\n"
    )
    source = msgspec.structs.replace(_onnx(tmp_path), inputs=f"{tmp_path}/own.py:{function}" if function else "")
    order = msgspec.json.encode(Order(source, SEEDS, str(tmp_path)))
    start = [sys.executable, "-P", "-c", _THREADS]
    done = subprocess.run(start, input=order, capture_output=True, start_new_session=True)
    assert (done.stdout or done.stderr)[-1:] == b"1"


_IMPORTS = """
import importlib, sys
from pathlib import Path
from fairlap.machine.programs.confined_home import moved_home
from fairlap.machine.programs.sandbox import confine
confine([moved_home([Path(sys.argv[2])])], [Path(sys.argv[2])])
importlib.import_module(sys.argv[1])
"""


@sandboxed
@pytest.mark.slow
@pytest.mark.parametrize("module", sorted({framework_named(name).module for name in framework_names()}))
def test_each_framework_is_imported_in_it(tmp_path: Path, module: str) -> None:
    """Telemetry, caches and settings in a home that cannot be written must not keep one from it."""
    pytest.importorskip(module, reason="`make test` installs it and runs this")
    done = subprocess.run([sys.executable, "-P", "-c", _IMPORTS, module, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_link_out_of_the_folder_of_a_model_needs_trust(tmp_path: Path) -> None:
    source = _configuration(tmp_path)
    (tmp_path / "bert" / "model.safetensors").symlink_to("/etc/hostname")
    folder = msgspec.structs.replace(source, path=f"hf:{tmp_path / 'bert'}")
    with pytest.raises(SourceError) as refused:
        HuggingFace.readable(folder)
    assert refused.value.code == "E_SOURCE_TRUST"
