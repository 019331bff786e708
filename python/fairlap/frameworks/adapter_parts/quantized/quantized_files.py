"""Models quantized to 8 bits by a framework's own tool, kept under a hash of everything that determines them."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.frameworks.contract import Quantization
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.files.private_files import make_cache_folder, tighten
from fairlap.machine.files.user_folders import work_cache
from fairlap.models.arrays import hash_of
from fairlap.models.code_hash import hash_of_code, hash_of_model_code
from fairlap.models.workload import Workload

_RECORD = "quantized.json"


class _Record(msgspec.Struct, frozen=True):
    seconds: float
    bytes: int


@dataclass(frozen=True)
class QuantizedFile:
    file: Path
    quantization: Quantization


def quantized_file(work: Workload, tool: str, version: str, name: str, write: Callable[[Path], None]) -> QuantizedFile:
    """Make the file with ``write``, which may put others next to it, or take it from the cache.

    It is written once for the same model, weights, calibration inputs and version.
    """
    made_of = [tool, version, work.package, str(work.batch), model_key(work.package), hash_of(work.weights)]
    made_of += [hash_of(own) for own in work.calibration_sets()]
    made_of.append(hash_of_code(Path(__file__).parents[1]))
    key = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]
    folder = work_cache() / work.precision / f"{Path(work.spec.name).stem}-b{work.batch}-{key}"
    record = _record_in(folder)
    if record is None:
        record = _written(folder, name, write)
    how = (
        f"quantized to {work.precision} by {tool} with {quantity_text.count(len(work.calibration), 'calibration set')}"
    )
    return QuantizedFile(folder / name, Quantization(f"{how}, {quantity_text.size(record.bytes)}", record.seconds))


def model_key(package: str) -> str:
    """Identify a model, so that a changed one is converted again; a user's model is in a folder named after a hash."""
    return package if package.startswith("/") else hash_of_model_code(package)


def _record_in(folder: Path) -> _Record | None:
    """Read the record, which is written last, so that a folder with it is whole."""
    try:
        return msgspec.json.decode((folder / _RECORD).read_bytes(), type=_Record)
    except (OSError, *NOT_THE_DOCUMENT):
        return None


def _written(folder: Path, name: str, write: Callable[[Path], None]) -> _Record:
    make_cache_folder(folder.parent)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        began_s = time.monotonic()
        write(scratch / name)
        size = sum(file.stat().st_size for file in scratch.iterdir())
        record = _Record(time.monotonic() - began_s, size)
        (scratch / _RECORD).write_bytes(msgspec.json.encode(record))
        for file in scratch.iterdir():
            tighten(file)
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed on the way
        try:
            scratch.rename(folder)
        except OSError:  # another process was quicker
            return _record_in(folder) or record
        return record
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
