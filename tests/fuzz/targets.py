"""What reads foreign bytes, each with valid files to begin with. A target may raise FairlapError and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
from click.testing import CliRunner
from fairlap.cli import cli
from fairlap.data.labelled.npz_file import npz_items
from fairlap.data.npy_rows import NpyRows
from fairlap.errors import FairlapError
from fairlap.history.foreign.foreign_files import points_in
from fairlap.models.array_files import safetensors
from fairlap.models.onnx_import import build, load_graph
from fairlap.models.sources.archives import require_archive
from fairlap.models.sources.given_data.reading import given_inputs
from fairlap.models.sources.onnx_graphs import binding
from fairlap.models.sources.python_models.exported_programs import require_harmless_program
from fairlap.scenarios.asking import Prepared
from fairlap.store.runs.run_file import encode_document, run_document
from fairlap.store.store import open_store
from fairlap.worker import protocol
from fairlap.worker.received import NotAMessage, Received
from foreign_results import action_data, asv_folder, data_js, pytest_folder
from onnx_files import source_of
from onnx_mutations import mutated, valid_models
from runs_for_rows import a_run
from runs_in_store import keep_whole

from fuzz import mutations
from fuzz.mutations import Mutation


@dataclass(frozen=True)
class Target:
    """``run`` gets the path of a file with the bytes, in a folder of its own."""

    run: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    mutate: tuple[Mutation, ...]
    name: str = "file"


def command(*words: str) -> None:
    """As a user calls it. Any exception but fairlap's own is a finding; a status is an answer."""
    result = CliRunner().invoke(cli, words)
    error = result.exception
    if error is None or isinstance(error, SystemExit):
        return
    if isinstance(error, FairlapError) and len(str(error).splitlines()) > 2:
        raise AssertionError(f"more than two lines: {error}")
    raise error


def _replies(path: Path) -> None:
    received, content = Received(), path.read_bytes()
    for begin in range(0, len(content), 1000):
        received.add(content[begin : begin + 1000])
        with contextlib.suppress(NotAMessage):
            while received.message() is not None:
                pass


def _reply_seeds() -> list[bytes]:
    from fairlap.scenarios.calls.latency_messages import Measured, MeasuredQuantity
    from fairlap.scenarios.load.load_messages import BYTES_OF_STAMPS

    line = protocol.line_of
    quantity = MeasuredQuantity("wall_ns", 3, "m", 1.0, {"quantum_ns": 1.0, "bias_ns": None})
    stamps = b'{"type":"loadtrial","kind":"rate","requests":1,"bytes":%d}\n' % BYTES_OF_STAMPS
    return [
        line(protocol.Hello(protocol.VERSION, "python", 1))
        + line(protocol.Begin("import"))
        + line(protocol.Phase("x", 1.0)),
        line(Prepared("1.0", {"threads": "1"}, "00" * 32)) + line(protocol.Answered(0.5)),
        line(Measured([quantity], 1, "samples", 1.0, 24)) + bytes(24) + line(protocol.Ended()),
        line(protocol.Failed("call", "exception", "no", "Traceback")) + stamps + bytes(BYTES_OF_STAMPS),
    ]


def _store(path: Path) -> None:
    os.environ["FAIRLAP_STORE"] = str(path)
    for words in (("runs", "--json"), ("show", "last"), ("export", "last"), ("runs", "export", "last", f"{path}.json")):
        with contextlib.suppress(FairlapError):
            command(*words)


@cache
def _a_store() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        with open_store(path) as store:
            keep_whole(store, a_run())
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
        return path.read_bytes()


@cache
def _a_bundle() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        path.write_bytes(_a_store())
        os.environ["FAIRLAP_STORE"] = str(path)
        command("bundle", "last", "-o", f"{folder}/run.fairlap", "--no-page")
        return Path(folder, "run.fairlap").read_bytes()


def _run_of_file(path: Path) -> None:
    for words in (
        ("export", str(path), "--json"),
        ("diff", str(path), str(path)),
        ("report", str(path), "-o", f"{path}.md"),
    ):
        command(*words)


def _run_file() -> bytes:
    return encode_document(run_document(a_run()))


def _plan() -> bytes:
    return json.dumps(json.loads(_run_file())["plan"]).encode()


def _saved(x: np.ndarray, labels: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, x=x, labels=labels)
    return out.getvalue()


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _tensors() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        safetensors.write(path, {"a": np.ones((2, 3), np.float32), "b": np.arange(5)})
        return path.read_bytes()


def _onnx(path: Path) -> None:
    with mock.patch.object(binding, "available_memory_bytes", return_value=2**28):
        build(load_graph(path), "numpy")


def _in_onnx(content: bytes, random: Random) -> bytes:
    del content
    return mutated(random.choice(valid_models()), random)


def _program(path: Path) -> None:
    require_archive(source_of(path), "no program")
    require_harmless_program(path)


def _npy_file(path: Path) -> None:
    given_inputs(str(path), "")
    rows = NpyRows(path)
    if rows.shape[0] and rows.bytes_each < 2**20:
        rows.span(0, 1)


_REQUEST = b"""models = ["mlp"]
contestants = ["torch"]
blocks = 2
seconds = 0.1
precision = ["fp32"]
[commands]
a = "true"
b = { run = "true", folder = "." }
"""


def _other_tools() -> list[bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        of_pytest = next(pytest_folder(Path(folder)).rglob("*.json")).read_bytes()
    return [data_js().encode(), json.dumps(action_data()).encode(), of_pytest]


def _asv_file(path: Path) -> None:
    """As one of a folder whose other files are valid."""
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        folder = asv_folder(Path(scratch) / "results")
        (folder / "bench" / "00.json").write_bytes(path.read_bytes())
        points_in(folder)


def _asv_seeds() -> list[bytes]:
    import tempfile

    found = []
    for version in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            asv_folder(Path(folder, "results"), version)
            found.append(next(Path(folder, "results", "bench").glob("0*.json")).read_bytes())
    return found


TARGETS: dict[str, Target] = {
    "othertools": Target(
        points_in, _other_tools, (mutations.in_json, mutations.in_json, mutations.in_bytes), "data.json"
    ),
    "asv": Target(_asv_file, _asv_seeds, (mutations.in_json, mutations.in_json, mutations.in_bytes), "0.json"),
    "replies": Target(_replies, _reply_seeds, (mutations.in_lines, mutations.in_lines, mutations.in_bytes)),
    "plan": Target(
        lambda path: command("compare", "--plan", str(path), "--dry-run"),
        lambda: [_plan()],
        (mutations.in_json, mutations.in_json, mutations.in_bytes),
    ),
    "run": Target(
        _run_of_file,
        lambda: [_run_file()],
        (mutations.in_json, mutations.in_json, mutations.in_bytes),
        "run.json",
    ),
    "bundle": Target(
        lambda path: command("verify", str(path)),
        lambda: [_a_bundle()],
        (mutations.in_archive, mutations.in_bytes),
        "run.fairlap",
    ),
    "store": Target(_store, lambda: [_a_store()], (mutations.in_database, mutations.in_bytes), "runs.sqlite"),
    "request": Target(
        lambda path: command("compare", str(path), "--dry-run"), lambda: [_REQUEST], (mutations.in_bytes,), "race.toml"
    ),
    "npy": Target(
        _npy_file,
        lambda: [_npy(np.ones((3, 4), np.float32)), _npy(np.arange(6)), _npy(np.array(["a", "bc"]))],
        (mutations.in_bytes,),
        "x.npy",
    ),
    "npz": Target(
        lambda path: (given_inputs(str(path), ""), npz_items(path, "")),
        lambda: [_saved(x=np.ones((6, 4), np.float32), labels=np.array([0, 1, 2, 0, 1, 2]))],
        (mutations.in_archive, mutations.in_bytes),
        "x.npz",
    ),
    "safetensors": Target(
        lambda path: safetensors.read(path), lambda: [_tensors()], (mutations.in_bytes,), "x.safetensors"
    ),
    "pt2": Target(
        _program,
        lambda: [(Path(__file__).parent / "seeds" / "linear.pt2").read_bytes()],
        (mutations.in_archive, mutations.in_archive, mutations.in_bytes),
        "m.pt2",
    ),
    "onnx": Target(_onnx, lambda: [b""], (_in_onnx,), "m.onnx"),
}
