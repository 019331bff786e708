"""What a race is fed: drawn samples, or a user's .npy files, held against the model's inputs before anything runs.

A path is one ``.npy`` file for a model with one input, or a folder with ``<input>.npy`` for each of its inputs. The
first axis counts the samples; the others and the type are the input's own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairlap import quantity_text
from fairlap.data.npy_rows import NpyRows
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.machine.atomic_files import atomic_replacement
from fairlap.models.draw import draw_inputs
from fairlap.models.spec import BATCH, Integers, Spec, Tensor
from fairlap.request.work import Work

SYNTHETIC = "synthetic"
DATA_HASH = "data_hash"  # among the settings of a process: the beginning of the hash
_HASH_DIGITS = 12
_FEWEST_BATCHES = 8
_MOST_DRAWN_BYTES = 32 * 2**20
_MOST_DRAWN = 4096
_READ_BYTES = 16 * 2**20
_HASHED_BYTES = 2**30


class _Stamp(NamedTuple):
    """What a file that is written to cannot keep."""

    modified_ns: int
    bytes: int
    inode: int


@dataclass(frozen=True)
class FedData:
    files: Mapping[str, Path]  # by the inputs' names
    samples: int

    @property
    def hash(self) -> str:
        """Of the files' lengths and of what they begin with, as they were when it was first asked for: enough to tell
        that a race was fed other data."""
        return self._first_seen[1]

    def lost(self) -> str:
        """Why nothing more can be fed; empty while all files are there, as long as they were."""
        stamps, _ = self._first_seen
        for name, file in self.files.items():
            try:
                if file.stat().st_size < stamps[name].bytes:
                    return f"{file} became shorter, and nothing more can be fed"
            except OSError as error:
                return f"{file} is no longer there to feed from: {error.strerror}"
        return ""

    def require_unchanged(self) -> None:
        """A race is about one set of data. The files are read again only when their stamps have moved."""
        stamps, digest = self._first_seen
        now = self._stamps()
        moved = [str(file) for name, file in self.files.items() if now[name] != stamps[name]]
        if moved and self._digest() != digest:
            raise FairlapError(f"{', '.join(moved)} changed since the race began; leave the data alone while it runs")

    @cached_property
    def _first_seen(self) -> tuple[dict[str, _Stamp], str]:
        """The stamps first: what changes while it is hashed shows the next time."""
        return self._stamps(), self._digest()

    def _stamps(self) -> dict[str, _Stamp]:
        stamps: dict[str, _Stamp] = {}
        for name, file in self.files.items():
            try:
                found = file.stat()
            except OSError as error:
                raise FairlapError(f"{file} cannot be read any more: {error.strerror}") from None
            stamps[name] = _Stamp(found.st_mtime_ns, found.st_size, found.st_ino)
        return stamps

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name, file in sorted(self.files.items()):
            digest.update(f"{name} {file.stat().st_size} ".encode())
            with file.open("rb") as opened:
                for _ in range(_HASHED_BYTES // _READ_BYTES):
                    digest.update(opened.read(_READ_BYTES))
        return digest.hexdigest()[:_HASH_DIGITS]


def require_feedable(text: str, spec: Spec, work: Work, device: str) -> None:
    """Before a race: everything that a user can have got wrong about its data."""
    if work.mode != "infer":
        raise InvalidRequest(f"{work.label}: data feeds inference; gradients would need labels too. Leave --data out")
    if work.precision != "fp32":
        raise InvalidRequest(f"{work.label}: data is fed as float32. Leave --data or --precision out")
    if device != "cpu":
        raise InvalidRequest(f"data is fed in host memory and not copied to {device}. Leave --data or --device out")
    for tensor in (*spec.inputs, *spec.outputs):
        if not tensor.shape or tensor.shape[0] != BATCH or BATCH in tensor.shape[1:]:
            raise InvalidRequest(f"{spec.name} cannot be fed: {tensor.name} does not have the items on its first axis")
    if text != SYNTHETIC:
        users_data(Path(text), spec, work.batch)


def users_data(path: Path, spec: Spec, batch: int) -> FedData:
    files = _files_at(path, spec)
    counts = {name: _samples_in(file, _input(spec, name), spec.name) for name, file in files.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        raise InvalidRequest(f"{path}: every input must have as many samples as the others; they have: {told}")
    samples = next(iter(counts.values()))
    if samples < batch:
        raise InvalidRequest(f"{path} has {quantity_text.count(samples, 'sample')}, too few for one batch of {batch}")
    return FedData(files, samples)


def drawn_data(spec: Spec, batch: int, seed: int, folder: Path) -> FedData:
    """Written once, or anew when a file is no longer whole. Enough that an epoch has several batches, and small enough
    to stay in the page cache."""
    bytes_each = sum(4 * math.prod(tensor.sized(1)) for tensor in spec.inputs)
    fitting = min(_MOST_DRAWN, _MOST_DRAWN_BYTES // bytes_each)
    samples = max(_FEWEST_BATCHES * batch, fitting // batch * batch)
    files = {tensor.name: folder / f"fed-{seed}-{samples}-{tensor.name}.npy" for tensor in spec.inputs}
    if not all(_holds(file, samples, _input(spec, name), spec.name) for name, file in files.items()):
        for name, array in draw_inputs(spec, samples, seed).items():
            _save(files[name], array)
    return FedData(files, samples)


def _holds(file: Path, samples: int, tensor: Tensor, model: str) -> bool:
    try:
        return _samples_in(file, tensor, model) == samples
    except InvalidRequest:  # it is not there, or not whole
        return False


def _save(file: Path, array: npt.NDArray[Any]) -> None:
    try:
        with atomic_replacement(file) as beside, beside.open("wb") as opened:
            np.save(opened, np.ascontiguousarray(array))
    except OSError as error:
        raise FairlapError(f"{file} cannot be written: {error.strerror or error}") from None


def _files_at(path: Path, spec: Spec) -> dict[str, Path]:
    try:
        return _files_found(path, spec)
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise InvalidRequest(f"{path}: there is no looking at it: {error.strerror}") from None


def _files_found(path: Path, spec: Spec) -> dict[str, Path]:
    names = [tensor.name for tensor in spec.inputs]
    if path.is_dir():
        files = {name: path / f"{name}.npy" for name in names}
        lacking = [file.name for file in files.values() if not file.is_file()]
        if lacking:
            raise InvalidRequest(f"{path} lacks {', '.join(lacking)}; {spec.name} takes {', '.join(names)}")
        return files
    if not path.is_file():
        raise InvalidRequest(f"there is no data at {path}; give synthetic, a .npy file or a folder of them")
    if len(names) > 1:
        listed = ", ".join(f"{name}.npy" for name in names)
        raise InvalidRequest(f"{spec.name} takes {len(names)} inputs; give a folder with {listed}, not {path}")
    return {names[0]: path}


def _input(spec: Spec, name: str) -> Tensor:
    return next(tensor for tensor in spec.inputs if tensor.name == name)


def _samples_in(file: Path, tensor: Tensor, model: str) -> int:
    rows = NpyRows(file)
    wanted = list(tensor.sized(1)[1:])
    if rows.dtype != np.dtype(tensor.dtype) or list(rows.shape[1:]) != wanted:
        shape = ", ".join(["N", *map(str, wanted)])
        has = f"{rows.dtype} of shape {list(rows.shape)}"
        raise InvalidRequest(f"{file} has {has}; {model}'s {tensor.name} takes {tensor.dtype} of shape [{shape}]")
    if isinstance(tensor.fill, Integers):
        _require_within(rows, tensor.name, tensor.fill, model)
    if rows.dtype.kind == "f":
        _require_finite(rows)
    return int(rows.shape[0])


def _require_within(rows: NpyRows, name: str, allowed: Integers, model: str) -> None:
    """A number beyond a table of words is no wrong answer but a crash."""
    for _, values in _spans(rows, rows.shape[0]):
        low, high = int(values.min()), int(values.max())
        if low < allowed.low or high >= allowed.high:
            takes = f"{allowed.low} to {allowed.high - 1}"
            raise InvalidRequest(f"{rows.path} has values from {low} to {high}; {model}'s {name} takes {takes}")


def _require_finite(rows: NpyRows) -> None:
    """No answer to NaN can be checked, and the contestants would be blamed for it."""
    for first, values in _spans(rows, min(rows.shape[0], max(1, _HASHED_BYTES // rows.bytes_each))):
        finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if not finite.all():
            sample = int(np.argmin(finite))
            number = values[sample][~np.isfinite(values[sample])].flat[0]
            raise InvalidRequest(
                f"{rows.path} has {number} in sample {first + sample} (from 0 on); give finite numbers"
            )


def _spans(rows: NpyRows, samples: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """So many samples, a few megabytes at a time, each time with the first one's number."""
    at_once = max(1, _READ_BYTES // rows.bytes_each)
    for first in range(0, samples, at_once):
        yield first, rows.span(first, min(at_once, samples - first))
