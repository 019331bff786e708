"""Options of a race as Python has them, such as arrays and mappings, made into those of a request file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairlap.errors import InvalidRequest, shown
from fairlap.request.race_request import RaceRequest
from fairlap.request.toml_file import from_python
from fairlap.suggestions import with_hint


def request_from_python(models: Sequence[str], on: object, options: Mapping[str, Any], folder: Path) -> RaceRequest:
    """Make the request of ``fairlap.compare`` and its siblings; arrays are written into the folder."""
    options = with_texts_for_paths(options)
    texts = {**options, **_as_texts(options, folder)}
    known = RaceRequest.__struct_fields__
    if unknown := sorted(set(texts) - set(known)):
        raise InvalidRequest(with_hint(f"there is no option {unknown[0]!r} for models", unknown[0], known))
    named: dict[str, Any] = {"models": tuple(models), **texts}
    contestants = on if isinstance(on, str) else texts_in("on", on)
    if contestants or "commands" not in texts:
        named["contestants"] = contestants
    return from_python(named, RaceRequest)


def with_texts_for_paths(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}


def texts_in(name: str, given: object) -> list[str]:
    """List texts or paths; a single one is a list of one."""
    found = [given] if isinstance(given, str | Path) else given
    if not isinstance(found, Sequence) or not all(isinstance(each, str | Path) for each in found):
        raise InvalidRequest(f"{name} must be a text or a list of texts, not {shown(given)}")
    return [str(each) for each in found]


def _as_texts(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    texts: dict[str, Any] = {}
    if "output" in options:
        texts["output"] = texts_in("output", options["output"])
    if isinstance(options.get("require"), list | tuple):
        texts["require"] = ",".join(texts_in("require", options["require"]))
    for name, written in _OF_MAPPINGS.items():
        if isinstance(options.get(name), Mapping):
            texts[name] = written(options[name])
    inputs = options.get("inputs")
    if isinstance(inputs, Mapping):
        texts["inputs"] = str(_written(folder / "inputs.npz", {f"inputs[{key!r}]": key for key in inputs}, inputs))
    elif inputs is not None and not isinstance(inputs, str):
        what = "the name of a file, or a mapping from the names of the model's inputs to arrays"
        raise InvalidRequest(f"inputs must be {what}, not {shown(inputs)}")
    for name in ("labels", "groups"):
        if options.get(name) is not None and not isinstance(options[name], str):
            texts[name] = str(_written(folder / f"{name}.npy", {name: name}, options))
    return texts


def _shapes(given: Mapping[Any, Any]) -> tuple[str, ...]:
    parts = []
    for name, sizes in given.items():
        if isinstance(sizes, str) or not isinstance(sizes, Sequence):
            raise InvalidRequest(f"shapes[{name!r}] must be sizes such as (8, 128), not {shown(sizes)}")
        parts.append(f"{name}:[{','.join(map(str, sizes))}]")
    return (",".join(parts),)


def _dims(given: Mapping[Any, Any]) -> str:
    return ",".join(f"{name}={size}" for name, size in given.items())


def _ranges(given: Mapping[Any, Any]) -> tuple[str, ...]:
    for name, ends in given.items():
        if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
            raise InvalidRequest(f"ranges[{name!r}] must be two ends such as (0, 1), not {shown(ends)}")
    return tuple(f"{name}:{low}..{high}" for name, (low, high) in given.items())


_OF_MAPPINGS: Mapping[str, Callable[[Mapping[Any, Any]], Any]] = {"shapes": _shapes, "dims": _dims, "ranges": _ranges}


def _written(path: Path, names: Mapping[str, Any], arrays: Mapping[Any, Any]) -> Path:
    """Write arrays by their keys; ``names`` has what messages call each of them."""
    import numpy as np

    found: dict[str, Any] = {}
    for name, key in names.items():
        try:
            array = np.asarray(arrays[key])
        except Exception:  # of objects whose parts cannot be read, or differ in length
            array = None
        if not isinstance(key, str) or array is None or array.dtype.hasobject or not math.prod(array.shape):
            raise InvalidRequest(f"{name} must be an array of numbers or texts, not {shown(arrays[key])}")
        found[key] = array
    if path.suffix == ".npz":
        np.savez(path, allow_pickle=False, **found)
    else:
        np.save(path, next(iter(found.values())), allow_pickle=False)
    return path
