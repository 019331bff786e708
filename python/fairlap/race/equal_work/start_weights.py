"""Weights from which training starts in place of drawn ones: what an earlier race learnt, or a file of the user's."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.machine.files.regular_file import require_regular
from fairlap.models.array_files import safetensors
from fairlap.models.array_files.safetensors import BadFile
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec
from fairlap.request.work import StartWeights

CODE = "E_START_FROM"
_HASH = "@sha256:"
_MOST_NAMED = 3


def start_weights(text: str, spec: Spec) -> StartWeights:
    """Find what ``FILE`` or ``FILE@sha256:HEX`` names, and raise InvalidRequest for weights of another model."""
    path, marked, expected = text.partition(_HASH)
    if not path.strip():
        raise InvalidRequest("--start-from is empty; name a safetensors file", code=CODE)
    if marked and not re.fullmatch("[0-9a-fA-F]{64}", expected):
        raise InvalidRequest(f"a SHA-256 has 64 hexadecimal digits (got {expected!r})", code=CODE)
    file = Path(path).absolute()
    start = StartWeights(str(file), _digest(file))
    if marked and expected.lower() != start.sha256:
        raise InvalidRequest(f"{path} has the SHA-256 {start.sha256}, not {expected}", code=CODE)
    weights_of(start, spec)
    return start


def weights_of(start: StartWeights, spec: Spec) -> Arrays:
    """Read the weights; raise InvalidRequest for a file that has changed, and for weights of another model."""
    file = Path(start.path)
    if _digest(file) != start.sha256:
        raise InvalidRequest(f"{file} has changed: its SHA-256 is no longer {start.sha256}", code=CODE)
    try:
        found = safetensors.read(file)
    except BadFile as error:
        raise InvalidRequest(str(error), code=CODE) from None
    wanted = {weight.name: weight.shape for weight in spec.weights}
    for what, names in (("lacks", wanted.keys() - found.keys()), ("has", found.keys() - wanted.keys())):
        if names:
            other = "" if what == "lacks" else f", which {spec.name} has not"
            raise InvalidRequest(f"{file} {what} the weights {_listed(names)}{other}", code=CODE)
    for name, shape in wanted.items():
        array = found[name]
        if array.dtype != np.float32 or array.shape != shape:
            raise InvalidRequest(
                f"{file}: {name} is {array.dtype} {list(array.shape)}, and in {spec.name} float32 {list(shape)}",
                code=CODE,
            )
        if not np.isfinite(array).all():
            raise InvalidRequest(f"{file}: {name} has values that are not finite", code=CODE)
    return {name: found[name] for name in wanted}


def _digest(file: Path) -> str:
    try:
        require_regular(file)
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise InvalidRequest(f"cannot read the weights {file}: {error.strerror}", code=CODE) from None
    except ValueError:
        raise InvalidRequest(f"{str(file)!r} is not a path to weights", code=CODE) from None


def _listed(names: set[str]) -> str:
    some = sorted(names)[:_MOST_NAMED]
    return ", ".join(some) + (f" and {len(names) - len(some)} more" if len(names) > len(some) else "")
