"""Several files of one model, opened together: which answers all are compared with, and a bundle for each.

The reference is that of the first file which has one in float64. Where none has, it is the answers that most of the
files agree with. Inputs are drawn once, for the first file; the others get the same ones by their own names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, Labels
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file, write_bundle
from fairlap.models.sources.contract import Bundle, Forward, Opened, Proof, RightAnswers, Route, SourceError
from fairlap.models.sources.exports.files import folder_of, forms_of, sources_of
from fairlap.models.sources.exports.learning import FileGradients, FirstFile, gradients_of_file, slopes_of
from fairlap.models.sources.exports.matching import Match, Place, places
from fairlap.models.sources.given_data.reading import inputs_of
from fairlap.models.sources.inputs import cast_notices, input_sets
from fairlap.models.sources.learning.loss import kind_of_loss
from fairlap.models.sources.learning.proof import labels_in, labels_of, require_loss
from fairlap.models.sources.proof import Outputs, outputs_of
from fairlap.models.sources.registry import place_of, require_kind
from fairlap.models.sources.spec_and_proof import batch_of, proof_of, require_float32, spec_of
from fairlap.request.fields.source import Form, Source

_NO_REFERENCE = "W_NO_REFERENCE"
_AGREES = 1e-3  # relative to the largest output: what another model would exceed


@dataclass(frozen=True)
class ExportedFile:
    source: Source
    folder: Path
    opened: Opened
    match: Match

    @property
    def has_float64(self) -> bool:
        return all(notice.code != _NO_REFERENCE for notice in self.opened.notices)

    def answers(self, inputs: Arrays) -> Outputs:
        """By the first file's names, as its kind computes them."""
        return outputs_of(self.as_first(self.opened.forward), self.opened.weights, inputs)

    def as_first(self, forward: Forward) -> Forward:
        """Take inputs and give outputs as the first file does."""

        def answer(weights: Arrays, inputs: Arrays) -> Mapping[str, np.ndarray]:
            return self.match.returned(dict(forward(weights, self.match.given(inputs))))

        return answer

    def given(self, proof: Proof) -> dict[str, dict[str, np.ndarray]]:
        """As it takes the sets of inputs."""
        places = self.match.inputs.items()
        return {
            which: {place.name: place.into(own[name]) for name, place in places} for which, own in proof.sets.items()
        }

    def write(
        self,
        whole: Source,
        first: Opened,
        proof: Proof,
        how: str,
        notices: Sequence[Notice],
        labels: Mapping[str, Labels],
        gradients: FileGradients | None,
    ) -> None:
        """Write the bundle of a further file, with its ``gradients`` where they are raced."""
        match, found = self.match, self.opened
        found = replace(found, items=batch_of(first), multiplications=first.multiplications, precisions=("fp32",))
        safetensors.write(weights_file(self.folder), found.weights)
        for which, own in self.given(proof).items():
            safetensors.write(inputs_file(self.folder, which), {**own, **labels_in(labels, which)})
        expected = {which: match.expected(answers) for which, answers in proof.references.items()}
        for which, answers in expected.items():
            safetensors.write(reference_file(self.folder, which), answers)
        kind, routes = require_kind(self.source), dict(found.routes)
        spec = spec_of(whole, kind.title, found, next(iter(expected.values())))
        if gradients is not None:
            spec, routes = gradients.of_spec(spec, whole), gradients.of_routes(routes)
            how = f"{how}; gradients by {gradients.how}" if gradients.how else how
        bundle = Bundle(
            self.source,
            place_of(kind),
            spec,
            batch_of(found),
            {name: _described(route, match.text) for name, route in routes.items()},
            how,
            (*_without_reference(found), *notices, *proof.notices),
            {
                precision: {match.outputs[name].name: each for name, each in allowed.items()}
                for precision, allowed in proof.tolerances.items()
            },
            files=() if gradients is None else _hashed(kind.files(self.source)),
            unnoticed={
                precision: tuple(match.inputs[name].name for name in names)
                for precision, names in proof.unnoticed.items()
            },
            own_types=found.own_types,
        )
        write_bundle(self.folder, bundle)


def opened_files(source: Source, folder: Path) -> Opened:
    files, sample = _files(source, folder)
    first = files[0].opened
    judge, agreeing = _judge(files, [file.answers(sample) for file in files])
    how = f"{judge.opened.reference}, of {judge.source.text}"
    if not judge.has_float64:
        how = f"{how}, with which {agreeing} of {len(files)} files agree"
    notices = () if judge.has_float64 else (Notice(_NO_REFERENCE, how),)
    return replace(
        first,
        reference=how,
        notices=(*_without_reference(first), *notices),
        precisions=("fp32",),
        proof=partial(_proven, source, files, judge, how, notices),
    )


def _files(source: Source, folder: Path) -> tuple[list[ExportedFile], Arrays]:
    """And one set of inputs, by the first file's names."""
    whole = sources_of(source)[0]
    first = _opened(whole, folder)
    like = forms_of(first.inputs)
    given = inputs_of(source)
    sample = input_sets(first.inputs, given, first.example, {"inputs": 0})["inputs"]
    answers = outputs_of(first.forward, first.weights, sample)
    same = Match(
        {tensor.name: Place(tensor.name, tensor.dtype) for tensor in first.inputs},
        {name: Place(name, first.output_types[name]) for name in first.outputs},
    )
    files = [ExportedFile(whole, folder, first, same)]
    outputs = _output_forms(first, answers)
    for number, own in enumerate(sources_of(source, like)[1:], start=1):
        own_folder = folder_of(folder, number)
        own_folder.mkdir(mode=0o700, exist_ok=True)
        found = _opened(own, own_folder)
        inputs = places("inputs", like, forms_of(found.inputs), whole.text, own.text)
        own_answers = outputs_of(found.forward, found.weights, Match(inputs, {}).given(sample))
        match = Match(inputs, places("outputs", outputs, _output_forms(found, own_answers), whole.text, own.text))
        files.append(ExportedFile(own, own_folder, found, match))
    return files, sample


def _opened(source: Source, folder: Path) -> Opened:
    try:
        found = require_kind(source).open(source, folder)
        require_float32(found)
    except FairlapError as error:
        message = str(error)
        raise SourceError(
            message if source.text in message else f"{source.text}: {message}", code=error.code
        ) from error
    return found


def _proven(
    source: Source,
    files: Sequence[ExportedFile],
    judge: ExportedFile,
    how: str,
    notices: Sequence[Notice],
    seeds: Mapping[str, int],
) -> Proof:
    """By the answers of the judge, which need not be the first file."""
    first, held, right = files[0].opened, judge.opened, judge.opened.right_answers
    judged = replace(
        first,
        forward=judge.as_first(held.forward),
        weights=held.weights,
        in_float32=None if held.in_float32 is None else judge.as_first(held.in_float32),
        roundings_inside=first.roundings_inside if judge is files[0] else None,
        right_answers=None
        if right is None
        else RightAnswers(tuple(map(judge.as_first, right.rounded)), tuple(map(judge.as_first, right.on_other_edges))),
    )
    given = inputs_of(source)
    proof = proof_of(source, judged, given, seeds)
    proof = replace(proof, notices=(*cast_notices(first.inputs, given), *proof.notices))
    labels, gradients = _gradients(source, files, proof, seeds) if source.loss else ({}, {})
    for file in files[1:]:
        file.write(source, first, proof, how, notices, labels, gradients.get(file.source.path))
    return proof


def _gradients(
    source: Source, files: Sequence[ExportedFile], proof: Proof, seeds: Mapping[str, int]
) -> tuple[Mapping[str, Labels], dict[str, FileGradients]]:
    """Find the labels that all have, and the gradients of each further file, by its path."""
    first, which = files[0], next(iter(proof.sets))
    kind = require_kind(first.source)
    spec = replace(spec_of(source, kind.title, first.opened, proof.references[which]), loss=kind_of_loss(source.loss))
    require_loss(source, spec)
    labels = labels_of(source, spec, seeds)
    learner = kind.learner(first.source, first.folder)
    slopes = slopes_of(learner, first.opened, proof.sets[which], labels.get(which))
    compared = FirstFile(first.source, first.opened, slopes, labels)
    found = {}
    for file in files[1:]:
        answers = file.match.expected(proof.references[which])
        own = replace(spec_of(source, kind.title, file.opened, answers), loss=spec.loss)
        found[file.source.path] = gradients_of_file(
            require_kind(file.source),
            file.source,
            file.folder,
            file.opened,
            file.match,
            own,
            file.given(proof),
            compared,
        )
    return labels, found


def _judge(files: Sequence[ExportedFile], answers: Sequence[Outputs]) -> tuple[ExportedFile, int]:
    """Choose the file whose answers are the reference, and count the files that agree with it, itself included."""
    counts = [sum(_agree(own, other) for other in answers) for own in answers]
    number = next((place for place, file in enumerate(files) if file.has_float64), counts.index(max(counts)))
    return files[number], counts[number]


def _agree(own: Outputs, other: Outputs) -> bool:
    return all(
        own[name].shape == array.shape
        and np.abs(own[name] - array).max(initial=0.0) <= _AGREES * np.abs(array).max(initial=0.0)
        for name, array in other.items()
    )


def _hashed(paths: Sequence[Path]) -> tuple[tuple[str, str], ...]:
    """Of the files that a process which differentiates them may read."""

    def digests() -> Iterator[tuple[str, str]]:
        for path in paths:
            with path.open("rb") as opened:
                yield str(path), hashlib.file_digest(opened, "sha256").hexdigest()

    return tuple(digests())


def _output_forms(found: Opened, answers: Outputs) -> tuple[Form, ...]:
    return tuple((name, answers[name].shape, found.output_types[name]) for name in found.outputs)


def _without_reference(found: Opened) -> list[Notice]:
    """Its notices, without that it has no reference itself."""
    return [notice for notice in found.notices if notice.code != _NO_REFERENCE]


def _described(route: Route, match: str) -> Route:
    return msgspec.structs.replace(route, name=f"{route.name}; {match}") if match and not route.why_not else route
