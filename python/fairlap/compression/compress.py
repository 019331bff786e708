"""Write smaller forms of a user's ONNX file into a new folder."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from fairlap.compression.forms import CODE, RANGED, Compression, Form
from fairlap.compression.writing import Order, Written
from fairlap.errors import InvalidRequest, shortened
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.launch.opened_source import process_of_source
from fairlap.models.sources.confinement import LIMIT_S
from fairlap.models.sources.contract import SourceError
from fairlap.request.fields.source import Source

_BY_ONNXRUNTIME = ("int8-dynamic", "int8-static", "fp8", "int4")


def compressed(file: Path, forms: Sequence[Form], folder: Path, inputs: Path | None = None) -> Compression:
    """Raise InvalidRequest or SourceError for a file that has no such form; then nothing is left of the folder."""
    _require(file, forms, folder, inputs)
    source = Source(
        str(file), str(file.absolute()), str(Path.cwd()), inputs=str(inputs.absolute()) if inputs is not None else ""
    )
    folder.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            written = _written(Order(source, tuple(forms), str(folder.absolute()), scratch))
    except BaseException:
        for each in folder.iterdir():
            each.unlink()
        folder.rmdir()
        raise
    return Compression(source=str(file), source_bytes=file.stat().st_size, forms=list(written.forms))


def _require(file: Path, forms: Sequence[Form], folder: Path, inputs: Path | None) -> None:
    names = [form.name for form in forms]
    if file.suffix.lower() != ".onnx" or not file.is_file():
        why = "it is not an ONNX file" if file.exists() else "there is no such file"
        raise InvalidRequest(f"{file}: {why}; name a .onnx file", code=CODE)
    if folder.exists():
        raise InvalidRequest(f"{folder} exists; name a new folder with --into", code=CODE)
    ranged = [name for name in names if name in RANGED]
    if ranged and inputs is None:
        raise InvalidRequest(f"{ranged[0]} takes ranges from --inputs, which it needs", code=CODE)
    if inputs is not None and not ranged:
        raise InvalidRequest(f"only {' and '.join(RANGED)} take --inputs", code=CODE)
    packages = {"onnx": "onnx", **({"onnxruntime": "onnxruntime"} if {*names} & {*_BY_ONNXRUNTIME} else {})}
    if missing := next((name for name in packages if find_spec(name) is None), ""):
        raise InvalidRequest(
            f"forms are written with {missing}, which is not installed: pip install 'fairlap[{missing}]'", code=CODE
        )


def _written(order: Order) -> Written:
    with process_of_source("fairlap.compression.writing", errors=subprocess.PIPE) as process:
        try:
            printed, errors = process.communicate(msgspec.json.encode(order), timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            why = f"{order.source.shown} was not compressed within {LIMIT_S / 60:.0f} minutes"
            raise SourceError(why, code="E_TIMEOUT") from None
        finally:
            process.terminate()  # does nothing when it has ended
    try:
        written = msgspec.json.decode(printed, type=Written)
    except NOT_THE_DOCUMENT:
        last = (errors.decode(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
        raise SourceError(
            f"{order.source.shown} ended the process that read it: {shortened(last)}", code=CODE
        ) from None
    if written.code:
        raise SourceError(written.message, code=written.code)
    return written
