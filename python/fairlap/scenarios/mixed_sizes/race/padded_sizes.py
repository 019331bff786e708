"""Contestants that pad: the model at the sizes that it gets from them, and the proof that padding changes no answer.

The float64 reference answers what contestants are given, at its true size and padded. Where the true part of an answer
differs, nothing is raced: no file says whether a model mixes what it computes along the padded axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.sizes.mix import Mix
from fairlap.request.fields.sizes.padding import CODE, PaddedSize, Padding, Shapes
from fairlap.request.work import Work
from fairlap.scenarios.mixed_sizes.race.materials_of_sizes import works_of_sizes
from fairlap.scenarios.mixed_sizes.race.padded_reference import PaddedReference, built_in_at, opened_at
from fairlap.scenarios.rotated.rotated_messages import SETS
from fairlap.worker.padded_calls import cut, grown

_MOST_APART = 1e-6  # of the largest value of an answer, in float64
_MOST_APART_IN_FLOAT32 = 1e-4  # where there is no float64 reference
_NO_DOUBLE = "W_NO_REFERENCE"


@dataclass(frozen=True)
class PaddedModel:
    """What a contestant that pads is prepared with."""

    prepared: PaddedReference  # in the size that the usual calls are padded to
    sizes: tuple[PaddedSize, ...]  # of all calls


@dataclass(frozen=True)
class _TrueSize:
    size: int
    padded_to: int
    materials: Materials

    @property
    def shapes(self) -> Shapes:
        return {tensor.name: tensor.sized(self.materials.work.batch) for tensor in self.materials.spec.inputs}

    def inputs(self, which: str) -> Arrays:
        arrays = safetensors.read(self.materials.inputs_file(which))
        return {name: arrays[name] for name in self.shapes}

    def named(self, which: str) -> str:
        """Among the sets of a padded size."""
        return f"{which}-{self.size}"


@cache
def padded_model(work: Work, padding: Padding, contestant: str, data_seed: int, passed: tuple[str, ...]) -> PaddedModel:
    """Open the model at every padded size, and compare its answers. Raises InvalidRequest where they differ."""
    found = list(_true_sizes(work, padding, contestant, data_seed, passed))
    assert work.mix is not None
    usual = found[work.mix.usual].padded_to
    goals = sorted({each.padded_to for each in found})
    references = {}
    sizes: dict[int, PaddedSize] = {}
    for size in goals:
        here = [each for each in found if each.padded_to == size]
        shapes = _shapes_at(size, found, contestant)
        sets = {each.named(which): grown(each.inputs(which), shapes) for each in here for which in SETS}
        all_sizes = goals if size == usual else []
        try:
            if work.source is None:
                references[size] = built_in_at(size, here[0].materials, sets)
            else:
                references[size] = opened_at(size, work, sets, all_sizes, passed)
        except FairlapError as error:
            raise InvalidRequest(f"{contestant} pads {work.mix.names[0]} to {size}: {error}", code=error.code) from None
        sizes |= {each.size: _proven(each, references[size], shapes, contestant) for each in here}
    return PaddedModel(references[usual], tuple(sizes.values()))


def padded_to(mix: Mix, padding: Padding, contestant: str) -> list[int]:
    """Find what each size is padded to, before anything is opened. Raises InvalidRequest where nothing can be."""
    if len(mix.names) > 1:
        raise InvalidRequest(
            f"{contestant} pads one size, and {len(mix.names)} change ({', '.join(mix.names)}); give the others with "
            "--dims",
            code=CODE,
        )
    if len(mix.sizes) == 1:
        raise InvalidRequest(
            f"{contestant}: all calls have {mix.names[0]} {mix.label(0)}, so there is nothing to pad", code=CODE
        )
    found = []
    for (size,) in mix.sizes:
        to = padding.up_from(size)
        if to is None:
            raise InvalidRequest(f"{contestant}: {mix.names[0]} {size} is larger than its largest bucket", code=CODE)
        found.append(to)
    return found


def _true_sizes(
    work: Work, padding: Padding, contestant: str, data_seed: int, passed: tuple[str, ...]
) -> Iterator[_TrueSize]:
    mix = work.mix
    assert mix is not None
    works = works_of_sizes(work, data_seed, passed)
    for (size,), to, each in zip(mix.sizes, padded_to(mix, padding, contestant), works, strict=True):
        yield _TrueSize(size, to, materials_for(each, data_seed, passed=passed))


def _shapes_at(size: int, found: list[_TrueSize], contestant: str) -> Shapes:
    """Of the inputs, from how they grow from the smallest size of the calls to the largest."""
    least, most = found[0], found[-1]
    shapes: Shapes = {}
    for name, shape in least.shapes.items():
        steps = [
            (large - small) / (most.size - least.size) for small, large in zip(shape, most.shapes[name], strict=True)
        ]
        if any(step % 1 for step in steps):
            raise InvalidRequest(f"{contestant}: the sizes of {name} do not grow with what is padded", code=CODE)
        shapes[name] = tuple(small + int(step) * (size - least.size) for small, step in zip(shape, steps, strict=True))
    return shapes


def _proven(true: _TrueSize, padded: PaddedReference, shapes: Shapes, contestant: str) -> PaddedSize:
    outputs: Shapes = {}
    in_float32 = any(notice.code == _NO_DOUBLE for notice in true.materials.notices)
    for which in SETS:
        answers = padded.answers(true.named(which))
        for name, exact in true.materials.reference(which).items():
            outputs[name] = exact.shape
            why = _why_another(answers[name], exact, _MOST_APART_IN_FLOAT32 if in_float32 else _MOST_APART)
            if why:
                raise InvalidRequest(
                    f"{contestant} pads {true.size} to {true.padded_to}, and then {name} {why}; give the model an "
                    "input that masks the padding, or leave the padding out",
                    code=CODE,
                )
    return PaddedSize(true.shapes, shapes, outputs)


def _why_another(padded: np.ndarray, exact: np.ndarray, limit: float) -> str:
    """How the true part of an answer to padded inputs differs; empty where it does not."""
    if padded.ndim != exact.ndim or any(large < small for large, small in zip(padded.shape, exact.shape, strict=True)):
        return f"is {list(padded.shape)} where it was {list(exact.shape)}"
    apart = float(np.abs(cut(padded, exact.shape) - exact).max(initial=0.0))
    largest = float(np.abs(exact).max(initial=0.0))
    if apart <= limit * largest:
        return ""
    return f"differs by {apart / largest:.2g} of its largest value" if largest else f"is {apart:.2g} where it was 0"
