"""The inputs that a user gives: a file, a folder, a table, texts, published images or a function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairlap.errors import FairlapError
from fairlap.machine.files.regular_file import require_regular
from fairlap.models.array_files.npy_map import mapped
from fairlap.models.array_files.numpy_files import why_not_read
from fairlap.models.array_files.stored_rows import stored
from fairlap.models.array_files.table_columns import features_in
from fairlap.models.published_data.boxed_photos import boxed_photos, files_of_photos, has_boxes
from fairlap.models.published_data.finding import images_at
from fairlap.models.published_data.photos import ImageSize
from fairlap.models.published_data.published_images import pixels_of
from fairlap.models.published_data.speech.speech_folders import SoundSize, holds_speech, refuse_beside_speech
from fairlap.models.published_data.speech.speech_inputs import VOCABULARY, sounds_of
from fairlap.models.published_data.text_tokens import TOKENIZER, is_text, tokens_of
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.script import sets_from_script
from fairlap.models.sources.given_data.sets import CODE, Sets, why_unreadable
from fairlap.models.task_metrics import found_metric
from fairlap.request.fields.data.corruption import Corruption
from fairlap.request.fields.data.table_column import TABLES, file_and_column
from fairlap.request.fields.source import Source, is_callable_name, path_parts

_IMAGE_AXES, _CHANNELS = 4, (1, 3)
_FEATURE_AXES, _SAMPLE_AXES = 3, 2
_OWN_FILES = ("input_*.pb", "*.npz")  # of a folder of sets


def given_files(source: Source) -> tuple[Path, ...]:
    """Files and folders that the user gives besides the model. Of a function, the script that it is in."""
    script, _, _ = source.inputs.rpartition(":")
    inputs = script if script.endswith(".py") else source.inputs
    tables = (file_and_column(each)[0] for each in (source.labels, source.groups))
    found = [Path(each) for each in dict.fromkeys((inputs, *tables)) if each]
    if has_boxes(photos := Path(source.inputs)):  # a file of boxes alone, with --labels, names no photos that are read
        found += files_of_photos(photos, verified=scores_verified(source))
    if any(map(is_text, found)) and (tokenizer := tokenizer_of(source)).is_file():
        found.append(tokenizer)
    if any(map(holds_speech, found)) and (vocabulary := vocabulary_of(source)).is_file():
        found.append(vocabulary)
    return tuple(found)


def inputs_of(source: Source) -> Sets:
    """Read what the user gives a model; texts as tokens, and of a table all columns but its labels and groups."""
    path = Path(source.inputs)
    if has_boxes(path):
        photos = boxed_photos(path, size := size_of(source), verified=scores_verified(source))
        return [{"": stored(map(pixels_of, photos.decoded(size)))}]
    if source.inputs and holds_speech(path):  # no inputs are no folder either
        return [{"": sounds_of(path, sound_size_of(source))}]
    if is_text(path) and path.exists():
        return [tokens_of(path, tokenizer_of(source), length_of(source))]
    if path.suffix.lower() in TABLES and path.is_file():
        named = (file_and_column(each) for each in (source.labels, source.groups))
        return [{"": _features(path, [column for file, column in named if file == source.inputs])}]
    return given_inputs(source.inputs, source.folder, size_of(source))


def _features(path: Path, without: Sequence[str]) -> np.ndarray:
    try:
        return features_in(path, without, CODE)
    except FairlapError:
        raise
    except (ValueError, OSError) as error:
        raise SourceError(f"{path} cannot be read as inputs: {why_unreadable(error)}", code=CODE) from None


def mistyped_inputs(source: Source, typos: Corruption) -> Sets:
    """Make tokens of texts with typing errors, as many for an item as without."""
    path = Path(source.inputs)
    [whole] = inputs_of(source)
    return [tokens_of(path, tokenizer_of(source), whole["input_ids"].shape[1], typos)]


def tokenizer_of(source: Source) -> Path:
    return _beside_model(source, TOKENIZER)


def vocabulary_of(source: Source) -> Path:
    return _beside_model(source, VOCABULARY)


def _beside_model(source: Source, name: str) -> Path:
    if is_callable_name(source.path):
        return Path(source.folder) / name
    path = Path(path_parts(source.path)[1])
    return (path if path.is_dir() else path.parent) / name


def length_of(source: Source) -> int | None:
    """Of texts in tokens, where a size is given for it."""
    return dict(source.dims).get("sequence")


def size_of(source: Source) -> ImageSize | None:
    """Of photos, where the shape of the one input of images is given, or the height and the width."""
    images = [sizes for _, sizes in source.shapes if len(sizes) == _IMAGE_AXES and sizes[1] in _CHANNELS]
    if len(images) == 1:
        return ImageSize(*images[0][1:])
    named = dict(source.dims)
    return ImageSize(3, named["height"], named["width"]) if {"height", "width"} <= set(named) else None


def scores_verified(source: Source) -> bool:
    """Whether photos of Open Images have its own score, which also counts what people looked for."""
    found = map(found_metric, source.metrics)
    return any(each is not None and each.reads == "open-images" for each in found)


def sound_size_of(source: Source) -> SoundSize | None:
    """Of recordings, where the shape of the one input is given: frames and bands, or samples."""
    if len(source.shapes) != 1:
        return None
    [(_, sizes)] = source.shapes
    if len(sizes) == _FEATURE_AXES:
        return SoundSize.of_frames(*sizes[1:])
    return SoundSize(sizes[1]) if len(sizes) == _SAMPLE_AXES else None


def given_inputs(text: str, folder: str, size: ImageSize | None = None) -> Sets:
    """Read the sets of inputs of a file, a folder or a function, by names; an empty name where a file has none.

    Photos are brought to the ``size``.
    """
    if not text:
        return []
    script, colon, function = text.rpartition(":")
    if colon and script.endswith(".py"):
        return sets_from_script(Path(script), function, folder)
    try:
        found = _from_path(Path(text), text, size)
    except FairlapError:
        raise
    except Exception as error:  # zipfile, NumPy and protobuf raise their own types
        raise SourceError(f"{text} cannot be read as inputs: {why_unreadable(error)}", code=CODE) from None
    if found is None:
        raise SourceError(
            f"{text} gives no inputs; use a .npz or .npy file, a folder such as test_data_set_0, images as MNIST, "
            "CIFAR, WebDataset, COCO or Open Images store them or in a folder for each class, recordings as "
            "LibriSpeech stores them, or file.py:function",
            code=CODE,
        )
    return found


def _from_path(path: Path, text: str, size: ImageSize | None) -> Sets | None:
    """None for a file that is of no kind known here."""
    if path.is_dir() and any(any(path.glob(each)) for each in _OWN_FILES):
        return _from_folder(path)
    require_regular(path)
    if (images := images_at(path, size)) is not None:
        return [{"": images}]
    if path.is_dir():
        return _from_folder(path)
    if path.suffix in (".npz", ".npy"):
        _require_readable(path, text)
    if path.suffix == ".npz":
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return [{name: arrays[name] for name in arrays.files}]
    return [{"": mapped(path)}] if path.suffix == ".npy" else None


def _require_readable(path: Path, text: str) -> None:
    if why := why_not_read(path, mapped=path.suffix == ".npy"):
        raise SourceError(f"{text} cannot be read as inputs: {why}", code="E_SOURCE_SIZE")


def _from_folder(folder: Path) -> Sets:
    """One set of protobufs, or one of each .npz file."""
    files = sorted(folder.glob("*.npz"))
    if not files and not any(folder.glob("input_*.pb")):
        refuse_beside_speech(folder)
        raise SourceError(
            f"{folder} holds no inputs that fairlap reads; they are input_0.pb and so on, .npz files, images, or parts "
            "of LibriSpeech such as dev-clean, with SPEAKER/CHAPTER/SPEAKER-CHAPTER-NNNN.flac",
            code=CODE,
        )
    if not files or any(folder.glob("input_*.pb")):
        return [_from_protobufs(folder)]
    return [own for file in files for own in given_inputs(str(file), "")]


def _from_protobufs(folder: Path) -> dict[str, np.ndarray]:
    """``input_0.pb`` and so on, as they come with the models of ONNX's zoo."""
    import onnx
    from onnx import numpy_helper

    files = sorted(folder.glob("input_*.pb"), key=lambda file: (len(file.stem), file.stem))
    found: dict[str, np.ndarray] = {}
    for number, file in enumerate(files):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(file.read_bytes())
        found[tensor.name or str(number)] = numpy_helper.to_array(tensor)
    return found
