"""What a model's file really is, by its first bytes, where its name says something else.

Only what is recognised counts: a file that is damaged, or of a kind that is not known here, is left to its reader.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlap import quantity_text
from fairlap.models.sources.contract import SourceError, SourceKind
from fairlap.models.sources.onnx_graphs.binding import require_memory

_START_BYTES = 4096
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v\d+\n(?:.*\n)*?size (\d+)\n?")
_GRAPH = re.compile(rb"\x08\x01\x12[\x80-\xff]")  # of a SavedModel, whose second field is large
_ONNX = re.compile(rb"\x08[\x01-\x40][\x12\x1a\x22\x28\x32\x3a\x42]")  # a version, then a field of a model
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_PAGE = re.compile(rb"\s*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_MOST_HEADER_BYTES = 10**8  # of safetensors

_PADDLE_WEIGHTS = ".pdiparams"
_SCRIPTS = (".pt", ".pth", ".jit", ".torchscript")
_NOT_FOR_US = "fairlap does not read it"


@dataclass(frozen=True)
class Content:
    what: str
    instead: str  # what to do about it
    suffixes: tuple[str, ...] = ()  # of the names that it may have


def _named(what: str, *suffixes: str) -> Content:
    return Content(what, f"give it a name that ends with {suffixes[0]}", suffixes)


_EMPTY = Content("empty", "write it or download it again")
_LITERT = _named("a LiteRT file", ".tflite")
_MODEL = _named("an ONNX file", ".onnx")
_OPENVINO = _named("an XML file of OpenVINO", ".xml")
_KERAS = _named("a Keras file", ".keras")
_PROGRAM = _named("an ExportedProgram of PyTorch", ".pt2")
_SCRIPT = _named("TorchScript", *_SCRIPTS)
_SAVED_BY_TORCH = Content(
    "a file of torch.save, which holds a pickle", "save the module with torch.export.save instead", _SCRIPTS
)
_UNPACK = "unpack it"

_BY_START: Sequence[tuple[bytes, Content]] = (
    (b"\x89HDF\r\n\x1a\n", Content("an HDF5 file, as Keras 2 wrote them", "load it in Keras and save it as .keras")),
    (b"GGUF", _named("a GGUF file", ".gguf")),
    (b"\x93NUMPY", Content("an array of NumPy", "name the model's file, and arrays with --inputs")),
    (b"\x1f\x8b", Content("compressed by gzip", _UNPACK)),
    (b"BZh", Content("compressed by bzip2", _UNPACK)),
    (b"\xfd7zXZ\x00", Content("compressed by xz", _UNPACK)),
    (b"\x28\xb5\x2f\xfd", Content("compressed by zstd", _UNPACK)),
    (b"7z\xbc\xaf\x27\x1c", Content("an archive of 7-Zip", _UNPACK)),
)


def content_of(path: Path) -> Content | None:
    """None where it is not recognised, or cannot be read."""
    if (program := _program_of_paddle(path)) is not None:
        return program
    try:
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
        return _recognised(path, start)
    except OSError:
        return None


def require_own_content(kind: type[SourceKind], path: Path, shown: str) -> None:
    """Refuse a file that is recognised as something else than its name says. Other packages know their own files."""
    if not kind.__module__.startswith(f"{__package__}.") or not path.is_file():
        return
    found = content_of(path)
    if found is not None and path.suffix.lower() not in found.suffixes:
        raise SourceError(f"{shown} is {found.what}; {found.instead}", code=kind.code_of_other_files)


def require_fetched(path: Path, start: bytes) -> None:
    """Refuse a pointer of Git LFS in the place of the file that it points to."""
    if (found := _pointer(start)) is not None:
        raise SourceError(f"{path} is {found.what}; {found.instead}")


def _program_of_paddle(path: Path) -> Content | None:
    """By its name and the weights beside it, which PaddlePaddle writes from version 2 on."""
    weights = path if path.suffix == _PADDLE_WEIGHTS else path.with_suffix(_PADDLE_WEIGHTS)
    programs = [each for suffix in (".pdmodel", ".json") if (each := weights.with_suffix(suffix)).is_file()]
    if path not in (*programs, weights) or not (weights.is_file() or path.suffix == ".pdmodel"):
        return None
    program = (programs or [weights.with_suffix(".pdmodel")])[0].name
    convert = (
        f"convert it with paddle2onnx --model_dir {path.parent} --model_filename {program} --params_filename "
        f"{weights.name} --save_file model.onnx, and name that"
    )
    return Content("an inference program of PaddlePaddle", convert)


def _recognised(path: Path, start: bytes) -> Content | None:
    if not start:
        return _EMPTY
    if start.startswith(b"PK\x03\x04"):
        return _archive(path)
    if start[4:8] == b"TFL3":
        return _LITERT
    if _GRAPH.match(start):
        return Content("the saved_model.pb of a SavedModel", "name its folder")
    if _ONNX.match(start):
        return _MODEL
    if _PICKLE.match(start):
        return Content("a pickle, which can run any code", "save the model itself, such as with torch.export.save")
    by_start = next((content for begin, content in _BY_START if start.startswith(begin)), None)
    return by_start or _pointer(start) or _text(start) or _weights(start) or _tar(path)


def _pointer(start: bytes) -> Content | None:
    if (pointer := _POINTER.match(start)) is None:
        return None
    size = quantity_text.size(int(pointer[1][:18]))
    return Content(f"a pointer of Git LFS to {size} that were not fetched", "fetch them with git lfs pull")


def _text(start: bytes) -> Content | None:
    if _PAGE.match(start):
        return Content("a web page", "download the file itself, for which some sites want a login")
    if start.lstrip().startswith(b"<") and b"<net" in start:
        return _OPENVINO
    return Content("JSON", _NOT_FOR_US) if re.match(rb'\s*\{\s*["}]', start) else None


def _weights(start: bytes) -> Content | None:
    length = int.from_bytes(start[:8], "little")
    if not 2 <= length <= _MOST_HEADER_BYTES or start[8:9] != b"{":
        return None
    return Content("safetensors, weights without a graph", "name what they belong to, such as hf:FOLDER")


def _tar(path: Path) -> Content | None:
    with path.open("rb") as file:
        file.seek(257)
        return Content("a tar archive", _UNPACK) if file.read(5) == b"ustar" else None


def _archive(path: Path) -> Content | None:
    """By its members; None where they cannot be listed."""
    require_memory(path.stat().st_size, str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return None
    inner = {name.partition("/")[2] for name in names}
    if "config.json" in names:
        return _KERAS
    if "models/model.json" in inner or "serialized_exported_program.json" in names:
        return _PROGRAM
    if "data.pkl" in inner:
        return _SCRIPT if "constants.pkl" in inner else _SAVED_BY_TORCH
    if names and all(name.endswith(".npy") for name in names):
        return Content("arrays of NumPy", "name the model's file, and arrays with --inputs")
    others = f" and {quantity_text.count(len(names) - 1, 'other')}" if len(names) > 1 else ""
    return Content(f"a zip archive of {names[0]!r:.80}{others}" if names else "an empty zip archive", _UNPACK)


def what_is_at(text: str) -> str:
    """Say what a file is that no kind reads by its name, and what to do; empty where it is not known."""
    found = content_of(Path(text)) if os.path.isfile(text) else None  # noqa: PTH113  (a Path raises where the text is too long)
    if found is None and os.path.isdir(text):  # noqa: PTH112  (as above)
        found = next(filter(None, map(_program_of_paddle, sorted(Path(text).glob(f"*{_PADDLE_WEIGHTS}")))), None)
    return "" if found is None else f"it is {found.what}: {found.instead}"
