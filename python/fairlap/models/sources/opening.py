"""Open a source in a separate process: read it, compute what answers are compared with, and write its bundle.

``python -m fairlap.models.sources.opening`` reads an ``Order`` from standard input and prints an ``Outcome``. Without
trust it reads the model in a sandbox, which is beneath the checks of each kind.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.errors import FairlapError, described, reason_of
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache
from fairlap.machine.lack_of_memory import lack_of_memory_in
from fairlap.machine.programs.guardian import guarded
from fairlap.machine.software import PACKAGES, installed_versions
from fairlap.models.array_files import safetensors
from fairlap.models.code_hash import hash_of_code
from fairlap.models.sources.bundle import (
    BUNDLE,
    inputs_file,
    reference_file,
    weights_file,
    write_bundle,
)
from fairlap.models.sources.confinement import confine_to, explained, replies
from fairlap.models.sources.contract import Bundle, Opened, Proof, Route, SourceError, SourceKind
from fairlap.models.sources.file_contents import require_fetched, require_own_content
from fairlap.models.sources.given_data.reading import given_files, inputs_of
from fairlap.models.sources.given_data.sets import CODE
from fairlap.models.sources.inputs import batches_of, cast_notices
from fairlap.models.sources.learning.loss import is_code, kind_of_loss, with_learning
from fairlap.models.sources.learning.proof import (
    Learnt,
    labels_in,
    labels_of,
    proven,
    require_loss,
    require_readable_labels,
)
from fairlap.models.sources.metric_data import MetricData, write_data
from fairlap.models.sources.proof import Outputs
from fairlap.models.sources.registry import place_of, plug_ins, require_kind
from fairlap.models.sources.spec_and_proof import batch_of, proof_of, require_float32, spec_of
from fairlap.models.spec import LEARNS, Spec
from fairlap.request.fields.source import Source, path_parts

_SIZE = "E_SOURCE_SIZE"
# What reads, converts and exports models, besides what decides the speed of frameworks.
_CONVERTERS = ("gguf", "h5py", "onnx-ir", "onnxscript", "optax", "protobuf", "tokenizers", "transformers")
_NOT_GENERATING = "{}: --generate is for language models of transformers, such as hf:FOLDER, and GGUF files"


class Order(msgspec.Struct, frozen=True):
    source: Source
    sets: dict[str, int]  # names of the sets of inputs, and the seed that draws each; the second differs from the first
    scratch: str  # a folder for what cannot be stored under the hash of its files
    fp8: bool = False  # compute what is allowed of answers in fp8 too, which takes two more evaluations


class Outcome(msgspec.Struct, frozen=True):
    folder: str = ""
    code: str = ""
    message: str = ""


def opened_folder(order: Order, *, confined: bool = False) -> Path:
    """Find the folder of the bundle, written now or before; ``confined`` leaves this process in a sandbox."""
    source = order.source
    kind = require_kind(source)
    _require_file(source)
    if not source.exports:  # of which each is looked at
        require_own_content(kind, Path(source.path), source.shown)
    if source.generate and not kind.generates:
        raise SourceError(_NOT_GENERATING.format(source.shown), code="E_SHAPES")
    kind.check(source)
    hashes = hashes_of(source)
    name = Path(path_parts(source.path)[1].rpartition(":")[2]).stem or "model"
    if not hashes or is_code(source.loss):  # code that is not hashed, so nothing is kept
        folder = Path(order.scratch) / f"{name}-{_key(order, kind, {})}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    else:
        folder = work_cache() / "sources" / f"{name}-{_key(order, kind, hashes)}"
        make_cache_folder(folder)
        if (folder / BUNDLE).is_file():
            return folder
    if confined:
        confine_to(source, hashes, folder, Path(tempfile.mkdtemp(dir=order.scratch)))
    _write(order, kind, folder, tuple(hashes.items()))
    return folder


def _require_file(source: Source) -> None:
    """Refuse a pipe, which would be waited for for ever, and a device, which never ends."""
    path = Path(source.path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise SourceError(f"{source.shown} is neither a file nor a folder")


def hashes_of(source: Source) -> dict[str, str]:
    """Hash every file of the source with SHA-256, by its path; empty where its files are not known.

    Raises SourceError when they are others than those that the source was planned with.
    """
    files = require_kind(source).files(source)
    hashes = {**_hashes(files), **_hashes_of_given(source)} if files else {}
    if require_kind(source).one_hash and hashes:
        hashes = {str(files[0]): _together(hashes, files[0])}
    _require_unchanged(source, hashes)
    return hashes


def bytes_of(source: Source) -> int:
    """Sum the sizes of a model's files; 0 where they are not known, as of a function."""
    return sum(file.stat().st_size for file in _files_in(require_kind(source).files(source)))


def _files_in(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from filter(Path.is_file, sorted(path.rglob("*")) if path.is_dir() else [path])


def _hashes(paths: tuple[Path, ...]) -> dict[str, str]:
    """SHA-256 of every file, by its path."""
    found = {}
    for file in _files_in(paths):
        with file.open("rb") as opened:
            require_fetched(file, opened.peek())
            found[str(file)] = hashlib.file_digest(opened, "sha256").hexdigest()
    return found


def _hashes_of_given(source: Source) -> dict[str, str]:
    """Hash inputs, labels and groups. What is no folder of them, such as that of the system, may change meanwhile."""
    given = given_files(source)
    if whole := next((each for each in given if each.resolve() == Path(each.anchor or "/")), None):
        raise SourceError(f"{whole} is the whole file system; name the file or folder with the inputs", code=CODE)
    try:
        return _hashes(given)
    except OSError as error:
        where = error.filename or ", ".join(map(str, given))
        raise SourceError(f"{where} cannot be read: {reason_of(error)}", code=CODE) from None


def _together(hashes: Mapping[str, str], root: Path) -> str:
    """Hash the contents of files by their places below the root."""
    digest = hashlib.sha256()
    for path, each in sorted(hashes.items()):
        digest.update(f"{Path(path).relative_to(root)}\0{each}\n".encode())
    return digest.hexdigest()


def _require_unchanged(source: Source, hashes: Mapping[str, str]) -> None:
    """Since a plan was made that is raced again."""
    for path, then in source.files:
        now = hashes.get(path, "")
        if now != then:
            what = f"has another SHA-256: {then[:12]} then, {now[:12]} now" if now else "is missing"
            raise SourceError(f"{path} changed since the run was planned: it {what}", code="E_SOURCE_CHANGED")
    if new := [path for path in hashes if source.files and path not in dict(source.files)]:
        raise SourceError(f"{new[0]} was not there when the run was planned", code="E_SOURCE_CHANGED")


def _write(order: Order, kind: type[SourceKind], folder: Path, files: tuple[tuple[str, str], ...]) -> None:
    require_readable_labels(order.source)
    found = kind.open(order.source, folder)
    require_float32(found)
    given, items = inputs_of(order.source) if found.proof is None else [], 0
    casts = cast_notices(found.inputs, given)
    if order.source.metrics:
        given, items = batches_of(found.inputs, given, found.batch_axes)
    if found.proof is None:
        require = partial(_require_loss, order.source, kind, found)
        proof = proof_of(order.source, found, given, order.sets, require, fp8=order.fp8)
    else:
        proof = found.proof(order.sets)
    exact = proof.references[next(iter(order.sets))]
    spec = spec_of(order.source, kind.title, found, exact)
    learnt, routes, how = None, dict(found.routes), found.reference
    if order.source.loss:
        spec, learnt, routes, gradients = _learning(order, kind, found, proof, spec, folder)
        how = f"{how}; gradients by {gradients}"
    safetensors.write(weights_file(folder), found.weights)
    for which, own in {**proof.sets, **proof.unanswered}.items():
        labels = {} if learnt is None else labels_in(learnt.labels, which)
        safetensors.write(inputs_file(folder, which), {**own, **labels})
    for which, answers in proof.references.items():
        safetensors.write(reference_file(folder, which), answers)
    data = MetricData()
    if order.source.metrics:
        data = write_data(order.source, found, given, items, exact, folder)
    bundle = Bundle(
        msgspec.structs.replace(order.source, files=()),
        place_of(kind),
        spec,
        batch_of(found),
        routes,
        how,
        (*found.notices, *casts, *proof.notices),
        proof.tolerances,
        items,
        files,
        found.dims,
        proof.unnoticed,
        "" if learnt is None else learnt.no_training,
        found.own_types,
        data.groups,
        data.corruptible,
    )
    write_bundle(folder, bundle)


def _require_loss(source: Source, kind: type[SourceKind], found: Opened, exact: Outputs) -> None:
    if source.loss:
        spec = spec_of(source, kind.title, found, exact)
        require_loss(source, replace(spec, loss=kind_of_loss(source.loss)))


def _learning(
    order: Order, kind: type[SourceKind], found: Opened, proof: Proof, spec: Spec, folder: Path
) -> tuple[Spec, Learnt, dict[str, Route], str]:
    """Prove that the model can be differentiated and trained, and what cannot be done on which route."""
    spec = replace(spec, loss=kind_of_loss(order.source.loss))
    learner = kind.learner(order.source, folder)
    labels = labels_of(order.source, spec, order.sets)
    learnt = proven(learner, spec, found.weights, proof.sets, labels, found.forward)
    weights = tuple(replace(weight, trained=weight.name in learnt.trained) for weight in spec.weights)
    other = learnt.other_in_training
    routes = {name: with_learning(route, other=other) for name, route in found.routes.items()}
    return replace(spec, weights=weights, modes=LEARNS, precisions=("fp32",)), learnt, routes, learner.how


def _key(order: Order, kind: type[SourceKind], hashes: Mapping[str, str]) -> str:
    """Of all that determines the bundle: the request, the files, and the code and packages that read them."""
    asked = msgspec.structs.replace(order.source, files=())
    code = hash_of_code(Path(__file__).parents[1])
    versions = {"python": platform.python_version(), **installed_versions((*PACKAGES, *_CONVERTERS)), **plug_ins()}
    everything = msgspec.json.encode(
        (asked, order.sets, order.fp8, place_of(kind), hashes, code, versions), order="sorted"
    )
    return hashlib.sha256(everything).hexdigest()[:16]


def _failed(source: Source, error: Exception) -> Outcome:
    """Tell a lack of memory from all else, whatever it surfaces as."""
    lack = lack_of_memory_in(error)
    if lack is not None and getattr(error, "code", "") != _SIZE:
        available = available_memory_bytes()
        free = "" if available is None else f"; {quantity_text.size(available)} are free"
        what = f"{source.shown}: memory ran out while its reference was computed ({described(lack)}){free}"
        return Outcome(code=_SIZE, message=what)
    if isinstance(error, FairlapError):
        code, message = explained(source, error.code, str(error), error)
    else:
        traceback.print_exception(error)
        code, message = explained(source, "E_SOURCE", f"{source.shown} cannot be opened: {described(error)}", error)
    return Outcome(code=code, message=message)


def main() -> None:
    os.umask(0o077)  # converters write into the user's cache
    guarded(sys.stdout.fileno())
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    answers = replies()
    try:
        outcome = Outcome(str(opened_folder(order, confined=True)))
    except Exception as error:
        outcome = _failed(order.source, error)
    answers.write(msgspec.json.encode(outcome))
    answers.flush()
    os._exit(0)  # exit handlers of frameworks can hang


if __name__ == "__main__":
    main()
