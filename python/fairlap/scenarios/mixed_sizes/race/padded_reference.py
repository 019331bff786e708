"""The float64 reference of a model at a size that calls are padded to, and the model itself in that size."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from fairlap.launch.opened_source import opened
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, hash_of
from fairlap.models.reference import reference_answers
from fairlap.models.registry import spec_with
from fairlap.models.sources.bundle import reference_file
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.sizes.mix import Mix
from fairlap.request.work import Work


@dataclass(frozen=True)
class PaddedReference:
    """``answers`` are those to a set of padded inputs, by its name."""

    workload: str  # as a worker is given it
    answers: Callable[[str], Arrays]
    free_sizes: Mapping[str, int] = field(default_factory=dict)  # likewise


def built_in_at(size: int, materials: Materials, sets: Mapping[str, Arrays]) -> PaddedReference:
    mix = materials.work.mix
    assert mix is not None
    sizes = {mix.names[0]: size}
    work = replace(materials.workload("inputs"), spec=spec_with(materials.package, sizes), free_sizes=sizes)
    return PaddedReference(materials.package, lambda which: reference_answers(replace(work, inputs=sets[which])), sizes)


def opened_at(
    size: int, work: Work, sets: Mapping[str, Arrays], all_sizes: Sequence[int], passed: tuple[str, ...]
) -> PaddedReference:
    """Open a user's model on these inputs. Contestants can be prepared with it where it is of ``all_sizes``."""
    source, mix = work.source, work.mix
    assert source is not None
    assert mix is not None
    [name] = mix.names
    padded = msgspec.structs.replace(
        source,
        dims=tuple((own, size if own == name else value) for own, value in source.dims),
        mix=Mix(mix.names, tuple((each,) for each in all_sizes), (1,) * len(all_sizes)) if all_sizes else None,
        inputs=_written([*sets.values()]),
        files=(),
        among_others=True,  # its inputs give the sizes, too
        unconverted=not all_sizes,
    )
    folder, _ = opened(padded, {which: number for number, which in enumerate(sets)}, passed=passed)
    return PaddedReference(str(folder), lambda which: safetensors.read(reference_file(folder, which)))


def _written(sets: Sequence[Arrays]) -> str:
    """As a user would give them; the last one is there for a calibration, which is not asked for."""
    sets = [*sets, sets[0]]
    digest = hashlib.sha256(" ".join(map(hash_of, sets)).encode()).hexdigest()[:16]
    folder = work_cache() / "work" / f"padded-{digest}"
    make_cache_folder(folder)
    for number, arrays in enumerate(sets):
        file = folder / f"{number:03}.npz"
        if not file.is_file():
            part = folder / f"{number:03}.part"
            with zipfile.ZipFile(part, "w") as archive:
                for name, array in arrays.items():
                    with archive.open(f"{name}.npy", "w") as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)
            part.replace(file)
    return str(folder.absolute())
