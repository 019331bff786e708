"""The data of a race: drawn samples, or a user's .npy files, checked against the model's inputs before anything runs.

A path is one ``.npy`` file for a model with one input, or a folder with ``<input>.npy`` for each of its inputs, and in
training with ``labels.npy``. The first axis counts the samples; the other axes and the type must be those of the input.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairlap import quantity_text
from fairlap.data.npy_rows import NpyRows
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.machine.files.atomic_files import atomic_replacement
from fairlap.models.draw import draw_inputs
from fairlap.models.modes import MODES
from fairlap.models.spec import BATCH, Integers, Spec, Tensor
from fairlap.request.work import Work

SYNTHETIC = "synthetic"
CHANGED = "E_DATA_CHANGED"
DATA_HASH = "data_hash"  # a setting in force: the first digits of the hash
_HASH_DIGITS = 12
_FEWEST_BATCHES = 8
_MOST_DRAWN_BYTES = 32 * 2**20
_MOST_DRAWN = 4096
_READ_BYTES = 16 * 2**20
_HASHED_BYTES = 2**30


class _Stamp(NamedTuple):
    """What changes when a file is written to."""

    modified_ns: int
    bytes: int
    inode: int


@dataclass(frozen=True)
class FedData:
    files: Mapping[str, Path]  # by the inputs' names
    samples: int

    @property
    def hash(self) -> str:
        """Hash of the sizes and beginnings of the files when it was first computed: enough to recognise other data."""
        return self._first_seen[1]

    def lost(self) -> str:
        """Why feeding cannot continue; empty while all files exist with their full length."""
        stamps, _ = self._first_seen
        for name, file in self.files.items():
            try:
                if file.stat().st_size < stamps[name].bytes:
                    return f"{file} became shorter, so feeding cannot continue"
            except OSError as error:
                return f"{file} can no longer be read: {error.strerror}"
        return ""

    def require_unchanged(self) -> None:
        """Refuse data that changed during a race; the files are hashed again only when their stamps have changed."""
        stamps, digest = self._first_seen
        now = self._stamps()
        moved = [str(file) for name, file in self.files.items() if now[name] != stamps[name]]
        if moved and self._digest() != digest:
            files = ", ".join(moved)
            raise FairlapError(f"{files} changed during the race; do not write to the data while it runs", code=CHANGED)

    @cached_property
    def _first_seen(self) -> tuple[dict[str, _Stamp], str]:
        """The stamps first, so that a change during hashing is noticed the next time."""
        return self._stamps(), self._digest()

    def _stamps(self) -> dict[str, _Stamp]:
        stamps: dict[str, _Stamp] = {}
        for name, file in self.files.items():
            try:
                found = file.stat()
            except OSError as error:
                raise FairlapError(f"{file} can no longer be read: {error.strerror}", code=CHANGED) from None
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


def by_the_item(spec: Spec, batch: int) -> Spec:
    """Of a user's model, whose sizes are bound: with the batch in place of a first size that is equal to it."""

    def itemised(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(BATCH, *tensor.shape[1:])) if tensor.shape[:1] == (batch,) else tensor

    return replace(
        spec, inputs=tuple(map(itemised, spec.inputs)), outputs=tuple(map(itemised, spec.outputs)), default_batch=batch
    )


def require_feedable(text: str, spec: Spec, work: Work) -> None:
    """Raise InvalidRequest for data that cannot be fed to this work, before the race starts."""
    if not MODES[work.mode].is_fed:
        message = f"{work.label}: --data feeds inference and training; race steps with --mode train"
        raise InvalidRequest(message, code="E_DATA")
    if work.precisions != ("fp32",):
        raise InvalidRequest(f"{work.label}: --data feeds float32 only; leave out --precision", code="E_DATA")
    for tensor in (*spec.inputs, *spec.outputs):
        if not tensor.shape or tensor.shape[0] != BATCH or BATCH in tensor.shape[1:]:
            message = f"{spec.name} cannot be fed: the first axis of {tensor.name} is not the batch"
            raise InvalidRequest(message, code="E_DATA")
    if text != SYNTHETIC:
        users_data(Path(text), spec, work.batch)


def users_data(path: Path, spec: Spec, batch: int) -> FedData:
    files = _files_at(path, spec)
    counts = {name: _samples_in(file, _input(spec, name), spec.name) for name, file in files.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        raise InvalidRequest(f"{path}: all files must have the same number of samples (found {found})", code="E_DATA")
    samples = next(iter(counts.values()))
    if samples < batch:
        message = f"{path} has {quantity_text.count(samples, 'sample')}, too few for one batch of {batch}"
        raise InvalidRequest(message, code="E_DATA")
    return FedData(files, samples)


def drawn_data(spec: Spec, batch: int, seed: int, folder: Path) -> FedData:
    """Draw data into files, which are written once, and again if one is incomplete.

    They are large enough for several batches in an epoch, small enough for the page cache.
    """
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
    except InvalidRequest:  # missing or incomplete
        return False


def _save(file: Path, array: npt.NDArray[Any]) -> None:
    try:
        with atomic_replacement(file, private=True) as beside, beside.open("wb") as opened:
            np.save(opened, np.ascontiguousarray(array))
    except OSError as error:
        raise FairlapError(f"cannot write {file}: {error.strerror or error}", code="E_FILE") from None


def _files_at(path: Path, spec: Spec) -> dict[str, Path]:
    try:
        return _files_found(path, spec)
    except OSError as error:  # the name is too long, or permission is denied
        raise InvalidRequest(f"cannot read {path}: {error.strerror}", code="E_DATA") from None


def _files_found(path: Path, spec: Spec) -> dict[str, Path]:
    names = [tensor.name for tensor in spec.inputs]
    if path.is_dir():
        files = {name: path / f"{name}.npy" for name in names}
        lacking = [file.name for file in files.values() if not file.is_file()]
        if lacking:
            message = f"{path} lacks {', '.join(lacking)}; {spec.name} is fed {', '.join(names)}"
            raise InvalidRequest(message, code="E_DATA")
        return files
    if not path.is_file():
        raise InvalidRequest(f"no data at {path}; use synthetic, a .npy file or a folder of them", code="E_DATA")
    if len(names) > 1:
        listed = ", ".join(f"{name}.npy" for name in names)
        message = f"{spec.name} is fed from {len(names)} files; use a folder with {listed} (got {path})"
        raise InvalidRequest(message, code="E_DATA")
    return {names[0]: path}


def _input(spec: Spec, name: str) -> Tensor:
    return next(tensor for tensor in spec.inputs if tensor.name == name)


def _samples_in(file: Path, tensor: Tensor, model: str) -> int:
    rows = NpyRows(file)
    wanted = list(tensor.sized(1)[1:])
    if rows.dtype != np.dtype(tensor.dtype) or list(rows.shape[1:]) != wanted:
        shape = ", ".join(["N", *map(str, wanted)])
        has = f"{rows.dtype} of shape {list(rows.shape)}"
        message = f"{file} has {has}; {tensor.name} of {model} takes {tensor.dtype} of shape [{shape}]"
        raise InvalidRequest(message, code="E_DATA")
    if isinstance(tensor.fill, Integers):
        _require_within(rows, tensor.name, tensor.fill, model)
    if rows.dtype.kind == "f":
        _require_finite(rows)
    return int(rows.shape[0])


def _require_within(rows: NpyRows, name: str, allowed: Integers, model: str) -> None:
    """Refuse an index beyond an embedding table, which would crash rather than give a wrong answer."""
    for _, values in _spans(rows, rows.shape[0]):
        low, high = int(values.min()), int(values.max())
        if low < allowed.low or high >= allowed.high:
            takes = f"{allowed.low} to {allowed.high - 1}"
            message = f"{rows.path} has values from {low} to {high}; {name} of {model} takes {takes}"
            raise InvalidRequest(message, code="E_DATA")


def _require_finite(rows: NpyRows) -> None:
    """Refuse NaN and infinity: outputs for them cannot be checked, and the contestants would be blamed."""
    for first, values in _spans(rows, min(rows.shape[0], max(1, _HASHED_BYTES // rows.bytes_each))):
        finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if not finite.all():
            sample = int(np.argmin(finite))
            number = values[sample][~np.isfinite(values[sample])].flat[0]
            message = f"{rows.path} has {number} in sample {first + sample} (counted from 0); all values must be finite"
            raise InvalidRequest(message, code="E_DATA")


def _spans(rows: NpyRows, samples: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Read the samples a few megabytes at a time, with the number of the first one."""
    at_once = max(1, _READ_BYTES // rows.bytes_each)
    for first in range(0, samples, at_once):
        yield first, rows.span(first, min(at_once, samples - first))
