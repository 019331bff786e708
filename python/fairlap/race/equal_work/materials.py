"""What every contestant is handed for one piece of work: the same files of weights and inputs, and their hashes.

They are stored in the user's cache under a name made of all that determines them, and are written once, or again
when a file is damaged. The answers of the float64 reference are stored with them, since a large model's reference
takes longer than
its race.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.launch.opened_source import opened
from fairlap.machine.user_folders import work_cache
from fairlap.models import safetensors
from fairlap.models.draw import LABELS, draw_inputs, draw_labels, draw_weights, rounded_to_bfloat16
from fairlap.models.gradient_check import possible_slopes
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.spec import Spec, Tolerance
from fairlap.models.workload import Arrays, Workload, hash_of
from fairlap.request.source import Source
from fairlap.request.work import Work

SLOPES = "slopes"  # a row for each of the possible ones
_CHANGED = 1000  # added to the seed: inputs that a contestant has not seen while it was made
IN_TURN = ("inputs", "changed")  # inputs that take turns in the timed calls
UNSEEN = ("unseen-0", "unseen-1", "unseen-2")  # inputs of the drawn calls
_UNSEEN_FROM = 2000


@dataclass(frozen=True)
class Materials:
    """One piece of work, ready to be handed out."""

    work: Work
    spec: Spec
    package: str
    folder: Path
    notices: tuple[Notice, ...] = ()  # of a user's model: what its checks cannot see
    output_tolerances: Mapping[str, Tolerance] = field(default_factory=dict)  # where they differ from the spec's

    @property
    def weights_file(self) -> Path:
        return weights_file(self.folder)

    def inputs_file(self, which: str) -> Path:
        """``inputs`` and ``changed`` ones take turns in the timed calls; each ``unseen`` one has a single call in a
        process, so an answer that was kept from before is wrong there."""
        return inputs_file(self.folder, which)

    @cached_property
    def weights(self) -> Arrays:
        return safetensors.read(self.weights_file)

    def workload(self, which: str) -> Workload:
        arrays = dict(safetensors.read(self.inputs_file(which)))
        labels = arrays.pop(LABELS, None)
        work = self.work
        return Workload(self.spec, self.package, work.batch, work.mode, work.precision, self.weights, arrays, labels)

    @cached_property
    def weights_hash(self) -> str:
        """What a contestant must have loaded; in bfloat16, what is left of the weights after rounding."""
        if self.work.precision == "fp32":
            return hash_of(self.weights)
        return hash_of({name: rounded_to_bfloat16(array) for name, array in self.weights.items()})

    def reference(self, which: str) -> Arrays:
        """The float64 answer, computed once for ever."""
        if self.work.source is not None:
            return safetensors.read(reference_file(self.folder, which))
        file = self.folder / f"reference-{which}-{self.work.mode}-{_hash_of_sources(self.package)}.safetensors"
        if not safetensors.is_whole(file):
            work = self.workload(which)
            answers: dict[str, Any] = dict(reference_answers(work))
            if work.mode == "grad":
                answers[SLOPES] = np.asarray(possible_slopes(work))
            safetensors.write(file, {name: np.asarray(value, dtype=np.float64) for name, value in answers.items()})
        return safetensors.read(file)

    def tolerance(self, output: str) -> Tolerance:
        return self.output_tolerances.get(output) or self.spec.tolerances[self.work.precision]

    @cached_property
    def sway(self) -> float:
        """How far rounding alone may move the slopes of the loss, relative to the slopes."""
        possible = self.reference("inputs")[SLOPES]
        return float(np.abs(possible - possible[0]).max() / max(np.sqrt(np.mean(possible[0] ** 2)), 1e-300))


def require_offered(spec: Spec, work: Work) -> None:
    if work.mode not in spec.modes:
        raise InvalidRequest(f"{work.model} has no mode {work.mode}; it has {', '.join(spec.modes)}")
    if work.precision not in spec.precisions:
        raise InvalidRequest(f"{work.model} has no precision {work.precision}; it has {', '.join(spec.precisions)}")


def materials_for(work: Work, data_seed: int, notify: Callable[[str], None] = lambda _: None) -> Materials:
    """Draw weights and inputs, or find those drawn before. A user's model has its own weights."""
    if work.source is not None:
        return _of_source(work, work.source, data_seed, notify)
    found = find(work.model)
    spec = found.spec
    require_offered(spec, work)
    key = hashlib.sha256(f"{spec!r} {work.batch} {data_seed}".encode()).hexdigest()[:16]
    materials = Materials(work, spec, found.package, work_cache() / "work" / f"{spec.name}-b{work.batch}-{key}")
    materials.folder.mkdir(parents=True, exist_ok=True)
    if not safetensors.is_whole(materials.weights_file):
        notify(f"{work.model}: writing weights and inputs (done once)")
        safetensors.write(materials.weights_file, draw_weights(spec, data_seed))
    for which, seed in seeds_of_inputs(data_seed).items():
        if not safetensors.is_whole(materials.inputs_file(which)):
            arrays: dict[str, npt.NDArray[Any]] = dict(draw_inputs(spec, work.batch, seed))
            labels = draw_labels(spec, work.batch, data_seed)  # of the loss, which stays the same
            safetensors.write(materials.inputs_file(which), arrays if labels is None else {**arrays, LABELS: labels})
    return materials


def seeds_of_inputs(data_seed: int) -> dict[str, int]:
    """The sets of inputs of a work, and the seed that draws each."""
    unseen = {which: data_seed + _UNSEEN_FROM + number for number, which in enumerate(UNSEEN)}
    return {"inputs": data_seed, "changed": data_seed + _CHANGED, **unseen}


def _of_source(work: Work, source: Source, data_seed: int, notify: Callable[[str], None]) -> Materials:
    folder, bundle = opened(source, seeds_of_inputs(data_seed), notify)
    require_offered(bundle.spec, work)
    return Materials(work, bundle.spec, str(folder), folder, bundle.notices, bundle.tolerances)


@cache
def _hash_of_sources(package: str) -> str:
    """A changed reference must not be answered from the cache. Code shared with other packages counts too, and ours
    that turns a reference into losses and slopes."""
    folder = Path(str(import_module(package).__file__)).parent
    if package.startswith("fairlap.bench_models."):
        folder = folder.parent
    ours = Path(str(import_module("fairlap.models").__file__)).parent
    digest = hashlib.sha256()
    for path in (*sorted(folder.rglob("*.py")), *sorted(ours.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
