"""The inputs of a source: the user's own, or drawn ones; and others of the same shapes for the checks."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError, described
from fairlap.machine.files.regular_file import require_regular
from fairlap.models.array_files.npy_map import mapped, release
from fairlap.models.array_files.numpy_files import why_not_read
from fairlap.models.array_files.table_columns import features_in
from fairlap.models.arrays import Arrays
from fairlap.models.draw import draw_inputs
from fairlap.models.published_data.finding import images_at
from fairlap.models.published_data.text_tokens import TOKENIZER, Tokens, is_text, tokens_of
from fairlap.models.sources.contract import SourceError
from fairlap.models.spec import Integers, Spec, Tensor
from fairlap.request.fields.corruption import Corruption
from fairlap.request.fields.source import Source, is_callable_name, path_parts
from fairlap.request.fields.table_column import TABLES, file_and_column

CODE = "E_SOURCE_INPUTS"
CALIBRATION = "calibration-"  # with a number, sets of inputs that a quantization may look at
_CALIBRATION_SETS, _CALIBRATION_ITEMS = 8, 64  # at least, where they are drawn
_MOST_CALIBRATION_SETS = 32  # of a user
CALIBRATION_FROM = 3000  # added to the seed
_MOST_SETS = 40
_OWN_FILES = ("input_*.pb", "*.npz")  # of a folder of sets

Sets = Sequence[dict[str, np.ndarray]]


def given_files(source: Source) -> tuple[Path, ...]:
    """Files and folders that the user gives besides the model. Of a function, the script that it is in."""
    script, _, _ = source.inputs.rpartition(":")
    inputs = script if script.endswith(".py") else source.inputs
    tables = (file_and_column(each)[0] for each in (source.labels, source.groups))
    found = [Path(each) for each in dict.fromkeys((inputs, *tables)) if each]
    if any(map(is_text, found)) and (tokenizer := tokenizer_of(source)).is_file():
        found.append(tokenizer)
    return tuple(found)


def inputs_of(source: Source) -> Sets:
    """Read what the user gives a model; texts as tokens, and of a table all columns but its labels and groups."""
    path = Path(source.inputs)
    if is_text(path) and path.is_file():
        return [tokens_of(path, tokenizer_of(source), length_of(source))]
    if path.suffix.lower() in TABLES and path.is_file():
        named = (file_and_column(each) for each in (source.labels, source.groups))
        return [{"": _features(path, [column for file, column in named if file == source.inputs])}]
    return given_inputs(source.inputs, source.folder)


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
    """Name the tokenizer's file beside the model."""
    if is_callable_name(source.path):
        return Path(source.folder) / TOKENIZER
    path = Path(path_parts(source.path)[1])
    return (path if path.is_dir() else path.parent) / TOKENIZER


def length_of(source: Source) -> int | None:
    """Of texts in tokens, where a size is given for it."""
    return dict(source.dims).get("sequence")


def given_inputs(text: str, folder: str) -> Sets:
    """Read the sets of inputs of a file, a folder or a function, by names; an empty name where a file has none."""
    if not text:
        return []
    script, colon, function = text.rpartition(":")
    if colon and script.endswith(".py"):
        return _from_script(Path(script), function, folder)
    try:
        found = _from_path(Path(text), text)
    except FairlapError:
        raise
    except Exception as error:  # zipfile, NumPy and protobuf raise their own types
        raise SourceError(f"{text} cannot be read as inputs: {why_unreadable(error)}", code=CODE) from None
    if found is None:
        raise SourceError(
            f"{text} gives no inputs; use a .npz or .npy file, a folder such as test_data_set_0, images as MNIST, "
            "CIFAR or WebDataset store them or in a folder for each class, or file.py:function",
            code=CODE,
        )
    return found


def _from_path(path: Path, text: str) -> Sets | None:
    """None for a file that is of no kind known here."""
    if path.is_dir() and any(any(path.glob(each)) for each in _OWN_FILES):
        return _from_folder(path)
    require_regular(path)
    if (images := images_at(path)) is not None:
        return [{"": images}]
    if path.is_dir():
        return _from_folder(path)
    if path.suffix in (".npz", ".npy"):
        _require_readable(path, text)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return [{name: arrays[name] for name in arrays.files}]
    return [{"": mapped(path)}] if path.suffix == ".npy" else None


def _require_readable(path: Path, text: str) -> None:
    if why := why_not_read(path, mapped=path.suffix == ".npy"):
        raise SourceError(f"{text} cannot be read as inputs: {why}", code="E_SOURCE_SIZE")


def why_unreadable(error: Exception) -> str:
    """NumPy's own text advises to unpickle, and the operating system's repeats the path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, EOFError):
        return "it is empty"
    if "pickled" in str(error):  # what NumPy takes any file for that does not begin as its own do
        return "it is not a file of NumPy's, .npy or .npz"
    of_objects = any(each in str(error) for each in ("allow_pickle", "Python objects"))
    return "it holds Python objects, which are not read" if of_objects else described(error)


def shapes_of(sets: Sets, names: Sequence[str], source: Source | None = None) -> dict[str, tuple[int, ...]]:
    """Of the first set, by the model's names. Of data for a metric, which runs in batches, those of a batch."""
    shapes = {name: array.shape for name, array in _named(sets[0], names).items()} if sets else {}
    if source is None or source.batch is None or not source.metrics:
        return shapes
    return {name: (source.batch, *shape[1:]) if shape else shape for name, shape in shapes.items()}


class Batches(Sequence[dict[str, np.ndarray]]):
    """Items in batches of one size, each made when it is asked for; the last one is filled up with the first items."""

    def __init__(self, arrays: Mapping[str, np.ndarray], items: int, size: int) -> None:
        self._arrays, self._items, self._size = arrays, items, size

    def __len__(self) -> int:
        return -(-self._items // self._size)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        places = np.arange(number * self._size, (number + 1) * self._size) % self._items
        found = {name: array[places] for name, array in self._arrays.items()}
        for array in self._arrays.values():
            release(array)
        return found


def batches_of(tensors: Sequence[Tensor], given: Sets, batch_axes: Mapping[str, int]) -> tuple[Sets, int]:
    """Split a metric's data into batches of the model's size, and count its items."""
    if len(given) != 1:
        raise SourceError(f"a metric takes one set of inputs (got {len(given)})", code=CODE)
    own = _named(given[0], [tensor.name for tensor in tensors])
    sizes = {tensor.sized(1)[0] if tensor.shape else 0 for tensor in tensors}
    counts = {len(array) if array.ndim else 0 for array in own.values()}
    if batch_axes or len(sizes) != 1 or len(counts) != 1 or 0 in sizes | counts:
        raise SourceError("for a metric the first size of every input must be the number of its items", code=CODE)
    (size,), (items,) = sizes, counts
    return Batches(own, items, size), items


def input_sets(
    tensors: Sequence[Tensor], given: Sets, example: Arrays | None, seeds: Mapping[str, int]
) -> dict[str, dict[str, np.ndarray]]:
    """Make one set for each of the seeds' names.

    The first is the user's, where there is one; others are the user's next ones, then its values in another order. Of
    several, one at least is left for calibration.
    """
    named, _ = _parted(tensors, given, example, len(seeds))
    spec = Spec("", "", tuple(tensors), (), (), 0, None, "")
    sets: dict[str, dict[str, np.ndarray]] = {}
    for number, (which, seed) in enumerate(seeds.items()):
        if number < len(named):
            sets[which] = named[number]
        elif named:
            sets[which] = {name: _reordered(array, seed) for name, array in named[0].items()}
        else:
            sets[which] = _drawn(spec, seed)
    return sets


def calibration_count(batch: int) -> int:
    """How many sets are drawn for calibration: with few items, larger activations than they have are cut off."""
    return max(_CALIBRATION_SETS, -(-_CALIBRATION_ITEMS // batch))


def calibration_sets(
    tensors: Sequence[Tensor], given: Sets, example: Arrays | None, seeds: Mapping[str, int], batch: int
) -> dict[str, dict[str, np.ndarray]]:
    """Choose what a quantization may look at: the user's sets that ``input_sets`` left, else drawn ones."""
    _, named = _parted(tensors, given, example, len(seeds))
    spec, first = Spec("", "", tuple(tensors), (), (), 0, None, ""), next(iter(seeds.values()))
    found = named or [_drawn(spec, first + CALIBRATION_FROM + number) for number in range(calibration_count(batch))]
    return {f"{CALIBRATION}{number}": own for number, own in enumerate(found)}


def _parted(tensors: Sequence[Tensor], given: Sets, example: Arrays | None, checks: int) -> tuple[Sets, Sets]:
    """Split the user's sets into those for the checks, and others for calibration, unless there is only one."""
    found = [*given[: checks + _MOST_CALIBRATION_SETS], *([dict(example)] if example and not given else [])]
    named = [of_tensors(own, tensors) for own in found]
    first = min(checks, len(named) - 1)
    return (named, named) if len(named) < 2 else (named[:first], named[first:])


def _drawn(spec: Spec, seed: int) -> dict[str, np.ndarray]:
    return {name: _with_a_first(array) for name, array in draw_inputs(spec, 1, seed).items()}


def of_tensors(own: Mapping[str, np.ndarray], tensors: Sequence[Tensor]) -> dict[str, np.ndarray]:
    """As the model takes them."""
    by_name = _named(own, [tensor.name for tensor in tensors])
    if missing := [tensor.name for tensor in tensors if tensor.name not in by_name]:
        raise SourceError(f"the inputs given lack {', '.join(missing)}", code=CODE)
    return {tensor.name: _fitting(tensor, by_name[tensor.name]) for tensor in tensors}


def _named(own: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    """By the model's names; arrays without names (empty, or numbers) count in the model's order."""
    if isinstance(own, Tokens):
        return {name: array for name, array in own.items() if name in names}
    if all(not name or name.isdecimal() for name in own):
        return dict(zip(names, own.values(), strict=False))
    unknown = [name for name in own if name not in names]
    if unknown:
        raise SourceError(f"the model has no input {unknown[0]!r}; it has {', '.join(names)}", code=CODE)
    return dict(own)


def cast_notices(tensors: Sequence[Tensor], given: Sets) -> list[Notice]:
    """Of floats that lose digits when the model takes them."""
    own = _named(given[0], [tensor.name for tensor in tensors]) if given else {}
    return [
        Notice(
            "W_INPUTS_CAST",
            f"{tensor.name} is {own[tensor.name].dtype} in the inputs given; it was rounded to {tensor.dtype}",
        )
        for tensor in tensors
        if tensor.name in own
        and own[tensor.name].dtype.kind == tensor.dtype[0] == "f"
        and own[tensor.name].dtype.itemsize > np.dtype(tensor.dtype).itemsize
    ]


def _fitting(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    if array.shape != tensor.shape:
        raise SourceError(
            f"{tensor.name} is {list(tensor.shape)} in the model, and {list(array.shape)} in the inputs given",
            code=CODE,
        )
    wanted = np.dtype(tensor.dtype)
    if array.dtype != wanted:
        if array.dtype.kind not in "biuf" or (wanted.kind != "f" and array.dtype.kind == "f"):
            raise SourceError(f"{tensor.name} takes {wanted}, and the inputs given have {array.dtype}", code=CODE)
        converted = array.astype(wanted)
        if wanted.kind != "f" and not np.array_equal(converted, array):
            raise SourceError(f"values of {tensor.name} do not fit into {wanted}", code=CODE)
        array = converted
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise SourceError(f"{tensor.name} has values that are not finite", code=CODE)
    if isinstance(tensor.fill, Integers) and tensor.fill.required and tensor.dtype != "bool" and array.size:
        low, high = int(array.min()), int(array.max())
        if low < tensor.fill.low or high >= tensor.fill.high:
            raise SourceError(
                f"{tensor.name} must be within {tensor.fill.low}..{tensor.fill.high - 1} (got {low}..{high}); outside "
                "of it frameworks silently differ",
                code=CODE,
            )
    return np.asarray(array, order="C")


def _reordered(array: np.ndarray, seed: int) -> np.ndarray:
    """Put the same values in other places: in range, and of the same size, whatever they mean.

    Where that changes nothing, floats are moved.
    """
    rng = np.random.default_rng(seed)
    flat = array.reshape(-1)
    other = flat[rng.permutation(flat.size)]
    if np.array_equal(other, flat):
        other = np.roll(flat, 1)
    if np.array_equal(other, flat) and flat.dtype.kind == "f":
        other = flat + (rng.uniform(0.5, 1.5, flat.size)).astype(flat.dtype)
    return other.reshape(array.shape)


def _with_a_first(array: np.ndarray) -> np.ndarray:
    """Set the first place of each row of a mask: one that hides a whole row makes NaN of its softmax."""
    if array.dtype.kind in "bi" and array.ndim and array.size and array.max() <= 1 and array.min() >= 0:
        array[..., 0] = 1
    return array


def _from_folder(folder: Path) -> Sets:
    """One set of protobufs, or one of each .npz file."""
    files = sorted(folder.glob("*.npz"))
    if not files or any(folder.glob("input_*.pb")):
        return [_from_protobufs(folder)]
    return [own for file in files for own in given_inputs(str(file), "")]


def _from_protobufs(folder: Path) -> dict[str, np.ndarray]:
    """``input_0.pb`` and so on, as they come with the models of ONNX's zoo."""
    import onnx
    from onnx import numpy_helper

    files = sorted(folder.glob("input_*.pb"), key=lambda file: (len(file.stem), file.stem))
    if not files:
        raise SourceError(f"{folder} has no input_0.pb", code=CODE)
    found: dict[str, np.ndarray] = {}
    for number, file in enumerate(files):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(file.read_bytes())
        found[tensor.name or str(number)] = numpy_helper.to_array(tensor)
    return found


@cache
def _from_script(script: Path, function: str, folder: str) -> Sets:
    """Call a function that returns inputs by name, or several such sets.

    It runs once, before the model is read, and in a separate process: threads that it starts would stay outside of the
    sandbox, and a model could let them act.
    """
    with tempfile.TemporaryFile() as handed_over:
        child = os.fork()
        if child == 0:
            _hand_over(handed_over, script, function, folder)
        _, status = os.waitpid(child, 0)
        handed_over.seek(0)
        if status:
            why = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {status >> 8}"
            raise SourceError(f"{script}:{function} ended its process: {why}", code=CODE)
        outcome: Sets | str = pickle.load(handed_over)  # of the user's own function
    if isinstance(outcome, str):
        raise SourceError(outcome, code=CODE)
    return outcome


def _hand_over(to: IO[bytes], script: Path, function: str, folder: str) -> NoReturn:
    """Write the sets, or why there are none."""
    outcome: Sets | str
    try:
        outcome = _sets_of(script, function, folder)
    except SourceError as error:
        outcome = str(error)
    except (Exception, SystemExit) as error:
        outcome = f"{script}:{function} raised {described(error)}"
    try:
        pickle.dump(outcome, to)
        to.flush()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    finally:
        os._exit(1)


def _sets_of(script: Path, function: str, folder: str) -> Sets:
    if not script.is_file():
        raise SourceError(f"{script} does not exist", code=CODE)
    sys.path[:0] = [str(script.parent), folder]
    described_as = importlib.util.spec_from_file_location(script.stem, script)
    assert described_as is not None
    assert described_as.loader is not None
    module = importlib.util.module_from_spec(described_as)
    described_as.loader.exec_module(module)
    result = getattr(module, function)()
    if not isinstance(result, Iterable):
        raise SourceError(f"{script}:{function} gives {type(result).__name__}, not arrays by name", code=CODE)
    sets: list[dict[str, np.ndarray]] = []
    for own in [result] if isinstance(result, Mapping) else result:
        if not isinstance(own, Mapping):
            raise SourceError(f"{script}:{function} gives {type(own).__name__}, not arrays by name", code=CODE)
        sets.append({str(name): array_of(value) for name, value in own.items()})
        if len(sets) == _MOST_SETS:
            break
    return sets


def array_of(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)
