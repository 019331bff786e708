"""Open a source in a separate process: read it, compute what answers are compared with, and write its bundle.

``python -m fairlap.models.sources.opening`` reads an ``Order`` from standard input and prints an ``Outcome``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import msgspec
import numpy as np

from fairlap.errors import FairlapError, described
from fairlap.machine.user_folders import work_cache
from fairlap.models import safetensors
from fairlap.models.sources.bundle import BUNDLE, inputs_file, reference_file, weights_file, write_bundle
from fairlap.models.sources.contract import Bundle, Opened, SourceError, SourceKind
from fairlap.models.sources.inputs import given_inputs, input_sets
from fairlap.models.sources.proof import Outputs, loose, outputs_of, require_usable, tolerances, unnoticed
from fairlap.models.sources.registry import place_of, require_kind
from fairlap.models.spec import Constant, Spec, Tensor, Weight
from fairlap.request.source import Source


class Order(msgspec.Struct, frozen=True):
    source: Source
    sets: dict[str, int]  # names of the sets of inputs, and the seed that draws each; the second differs from the first
    scratch: str  # a folder for what cannot be stored under the hash of its files


class Outcome(msgspec.Struct, frozen=True):
    folder: str = ""
    code: str = ""
    message: str = ""


def opened_folder(order: Order) -> Path:
    """The folder of the bundle, written now or before."""
    source = order.source
    kind = require_kind(source)
    files = kind.files(source)
    name = Path(source.path.rpartition(":")[2] or source.path).stem or "model"
    if not files:
        folder = Path(order.scratch) / f"{name}-{_key(order, kind, ())}"
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder = work_cache() / "sources" / f"{name}-{_key(order, kind, files)}"
        if (folder / BUNDLE).is_file():
            return folder
    folder.mkdir(parents=True, exist_ok=True)
    _write(order, kind, folder)
    return folder


def _write(order: Order, kind: type[SourceKind], folder: Path) -> None:
    found = kind.open(order.source, folder)
    _require_float32(found)
    sets = input_sets(found.inputs, given_inputs(order.source.inputs, order.source.folder), found.example, order.sets)
    first, second = list(sets)[:2]
    references = {which: outputs_of(found.forward, found.weights, own) for which, own in sets.items()}
    for outputs in references.values():
        require_usable(outputs)
    exact = references[first]
    allowed = tolerances(found.forward, found.weights, sets[first], exact)
    notices = [*found.notices, *loose(allowed)]
    notices += unnoticed(found.forward, found.weights, sets[first], sets[second], exact, allowed, found.inputs)
    if all(np.array_equal(references[second][name], exact[name]) for name in exact):
        raise SourceError(
            "other inputs give the same outputs, so a kept answer would not be noticed", code="E_SOURCE_PROOF"
        )
    safetensors.write(weights_file(folder), found.weights)
    for which, own in sets.items():
        safetensors.write(inputs_file(folder, which), own)
        safetensors.write(reference_file(folder, which), references[which])
    spec = _spec_of(order.source, kind, found, exact)
    bundle = Bundle(
        order.source,
        place_of(kind),
        spec,
        _batch_of(found),
        dict(found.routes),
        found.reference,
        tuple(notices),
        allowed,
    )
    write_bundle(folder, bundle)


def _require_float32(found: Opened) -> None:
    """Contestants are asked for float32, and their weights are compared in it."""
    others = {str(array.dtype) for array in found.weights.values()} - {"float32"}
    if others:
        raise SourceError(f"the model has weights of {', '.join(sorted(others))}; only models in float32 are raced")


def _spec_of(source: Source, kind: type[SourceKind], found: Opened, exact: Outputs) -> Spec:
    weights = tuple(Weight(name, array.shape, Constant(0.0)) for name, array in found.weights.items())
    multiplied = found.multiplications
    return Spec(
        name=source.name,
        task=f"a user's model ({kind.title})",
        inputs=found.inputs,
        outputs=tuple(
            Tensor(name, exact[name].shape, Constant(0.0), found.output_types[name]) for name in found.outputs
        ),
        weights=weights,
        parameters=sum(array.size for array in found.weights.values()),
        gmacs_per_item=None if multiplied is None else multiplied / 1e9 / _batch_of(found),
        published="counted in the model",
        modes=("infer",),
        precisions=("fp32",),
        default_batch=_batch_of(found),
    )


def _batch_of(found: Opened) -> int:
    """The first size of all inputs, where they have the same; else a call is one item."""
    sizes = {tensor.sized(1)[0] if tensor.shape else 1 for tensor in found.inputs}
    return sizes.pop() if len(sizes) == 1 else 1


def _key(order: Order, kind: type[SourceKind], files: tuple[Path, ...]) -> str:
    """Of all that determines the bundle: the request, the files, and the code that reads them."""
    digest = hashlib.sha256(msgspec.json.encode((order.source, order.sets, place_of(kind)), order="sorted"))
    inputs = Path(
        order.source.inputs.rpartition(".py:")[0] + ".py" if ".py:" in order.source.inputs else order.source.inputs
    )
    for path in (*files, *([inputs] if order.source.inputs else [])):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(str(file).encode())
                with file.open("rb") as opened:
                    digest.update(hashlib.file_digest(opened, "sha256").digest())
    ours = Path(__file__).parents[1]
    for file in sorted(ours.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def main() -> None:
    """What a model prints on its way goes to standard error."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        outcome = Outcome(str(opened_folder(order)))
    except FairlapError as error:
        outcome = Outcome(code=error.code, message=str(error))
    except MemoryError:
        outcome = Outcome(code="E_SOURCE_SIZE", message=f"there is not enough memory to open {order.source.text}")
    except Exception as error:
        import traceback

        traceback.print_exc()
        outcome = Outcome(code="E_SOURCE", message=f"{order.source.text} cannot be opened: {described(error)}")
    answers.write(msgspec.json.encode(outcome))
    answers.flush()
    os._exit(0)  # exit handlers of frameworks can hang


if __name__ == "__main__":
    main()
