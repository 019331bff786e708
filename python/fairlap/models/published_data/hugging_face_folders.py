"""Folders that `save_to_disk` of Hugging Face's datasets writes: Arrow files, with features and splits beside them.

Of several splits the items of `train` are learnt from, and those of `test`, else of `validation`, are held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.models.array_files.pyarrow_modules import pyarrow_for
from fairlap.models.published_data.photos import Encoded, Photos, require_pillow
from fairlap.models.published_data.published_images import CODE, Array, refuse
from fairlap.models.published_data.texts import Texts

_SPLITS, _STATE, _INFO = "dataset_dict.json", "state.json", "dataset_info.json"
_TRAIN, _HELD_OUT = "train", ("test", "validation")
_LABELS = ("label", "labels", "fine_label")
_IDENTIFIERS = ("idx", "id")
_MOST_TEXTS = 2


class _Splits(msgspec.Struct):
    splits: list[str]


class _File(msgspec.Struct):
    filename: str


class _State(msgspec.Struct):
    data_files: list[_File] = msgspec.field(name="_data_files")


class _Feature(msgspec.Struct):
    type: str = msgspec.field(name="_type", default="")
    names: list[str] = []
    dtype: str = ""


class _Info(msgspec.Struct):
    features: dict[str, Any]


@dataclass(frozen=True)
class HuggingFaceFolder:
    path: Path
    parts: tuple[Path, ...]  # the folders of the splits that are read: train, and what is held out

    @cached_property
    def features(self) -> Mapping[str, _Feature]:
        """Those of the columns; of lists and nested ones nothing but the name."""
        found = _decoded(self.parts[0] / _INFO, _Info).features
        return {
            name: msgspec.convert(each, _Feature) if isinstance(each, dict) and "_type" in each else _Feature()
            for name, each in found.items()
        }

    @cached_property
    def label(self) -> str:
        """The column of classes, else one that is named as labels are, else the last one."""
        classes = [name for name, each in self.features.items() if each.type == "ClassLabel"]
        if len(classes) == 1:
            return classes[0]
        return next((name for name in (*_LABELS, *reversed(list(self.features))) if name in self.features), "")

    @property
    def columns(self) -> list[str]:
        """All but numbers that only identify an item."""
        return [name for name in self.features if name not in _IDENTIFIERS or name == self.label]

    @cached_property
    def held_out(self) -> Array | None:
        if len(self.parts) == 1:
            return None
        counts = [sum(batch.num_rows for batch in self.batches([self.label], [part])) for part in self.parts]
        return np.repeat([False, True], counts)

    def batches(self, columns: Sequence[str], parts: Sequence[Path] = ()) -> Iterator[Any]:
        """Read the columns of all parts as they are stored, some rows at a time."""
        arrow, _ = pyarrow_for(self.path, CODE)
        for part in parts or self.parts:
            for each in _decoded(part / _STATE, _State).data_files:
                file = _inside(part, each.filename)
                try:
                    with arrow.memory_map(str(file)) as mapped, arrow.ipc.open_stream(mapped) as stream:
                        for batch in stream:
                            yield arrow.Table.from_batches([batch]).select(list(columns))
                except (arrow.ArrowException, KeyError, OSError) as error:
                    why = str(error).splitlines()[0] if str(error) else "it is damaged"
                    raise refuse(file, f"it is not an Arrow file of its features: {why}") from None

    def photos(self) -> Photos | None:
        """None where no column has images."""
        images = [name for name, each in self.features.items() if each.type == "Image"]
        if len(images) != 1:
            return None
        require_pillow(self.path)

        def encoded() -> Iterator[Encoded]:
            number = 0
            for batch in self.batches(images):
                for image in batch.column(0).to_pylist():
                    number += 1
                    if not image or not image.get("bytes"):
                        raise refuse(self.path, f"the image of item {number} is not in it; save it with the set")
                    yield f"{self.path}, item {number}", image["bytes"]

        numbers, names = self.classes()
        return Photos(encoded, numbers, names, self.held_out)

    @property
    def columns_of_texts(self) -> list[str]:
        """Name the first two; none beside images."""
        if any(each.type == "Image" for each in self.features.values()):
            return []
        texts = [name for name, each in self.features.items() if each.dtype in ("string", "large_string")]
        return [name for name in texts if name != self.label][:_MOST_TEXTS]

    def texts(self) -> Texts:
        """Read those of the part that is held out."""
        texts, part = self.columns_of_texts, self.parts[-1:]
        rows = [row for batch in self.batches(texts, part) for row in zip(*batch.to_pydict().values(), strict=True)]
        if lacking := next((number for number, row in enumerate(rows, 1) if None in row), 0):
            raise refuse(self.path, f"item {lacking} has no text in one of {', '.join(texts)}")
        if not rows:
            raise refuse(self.path, "it has no items")
        first, *second = map(list, zip(*rows, strict=True))
        return Texts(first, second[0] if second else None, self._numbers(part))

    def classes(self) -> tuple[Array, tuple[str, ...]]:
        """Read the number of the class of each item, and the names of all."""
        numbers = self._numbers()
        names = tuple(self.features[self.label].names)
        if numbers.dtype.kind != "i" or numbers.min() < 0 or (names and numbers.max() >= len(names)):
            raise refuse(self.path, f"the column {self.label!r} has other numbers than those of its classes")
        return numbers, names or tuple(map(str, range(int(numbers.max()) + 1)))

    def _numbers(self, parts: Sequence[Path] = ()) -> Array:
        found = [np.asarray(batch.column(0).to_numpy()) for batch in self.batches([self.label], parts)]
        numbers = np.concatenate(found) if found else np.zeros(0)
        if not len(numbers) or numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
            raise refuse(self.path, f"the column {self.label!r} has no number for each item")
        return numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.int32)


def holds_hugging_face(folder: Path) -> bool:
    return folder.is_dir() and any((folder / name).is_file() for name in (_SPLITS, _STATE))


def hugging_face_photos(path: Path) -> Photos:
    if (found := hugging_face_folder(path).photos()) is None:
        raise refuse(path, "none of its columns has images; save a table of numbers as Parquet for --inputs")
    return found


def hugging_face_folder(path: Path) -> HuggingFaceFolder:
    """Find its parts; refuse a folder that lacks a file of the layout."""
    if not (path / _SPLITS).is_file():
        return HuggingFaceFolder(path, (path,))
    splits = _decoded(path / _SPLITS, _Splits).splits
    held = next((name for name in _HELD_OUT if name in splits), None)
    names = [name for name in (_TRAIN, held) if name in splits]
    if not names:
        raise refuse(
            path / _SPLITS, f"it names neither {_TRAIN} nor {' nor '.join(_HELD_OUT)}; name the folder of a split"
        )
    return HuggingFaceFolder(path, tuple(_inside(path, name) for name in names if name))


def _decoded(file: Path, kind: Any) -> Any:
    if not file.is_file():
        raise refuse(file, "it is missing from a folder of Hugging Face's datasets")
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise refuse(file, f"it is not as Hugging Face's datasets write it: {error}") from None


def _inside(folder: Path, name: str) -> Path:
    if not name or name != Path(name).name or name == "..":
        raise refuse(folder, f"{name!r:.60} is not the name of a file in it")
    if not (folder / name).exists():
        raise refuse(folder / name, "it is missing from a folder of Hugging Face's datasets")
    return folder / name
