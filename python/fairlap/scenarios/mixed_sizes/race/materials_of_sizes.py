"""What contestants are handed at each size of a mix: inputs, and the float64 reference's answers to them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.launch.opened_source import opened
from fairlap.models.registry import find, free_sizes_at
from fairlap.models.sources.bundle import weights_file
from fairlap.race.equal_work.material_sources import materials_for, seeds_of_inputs
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.sizes.mix import CODE, Mix
from fairlap.request.fields.source import Source
from fairlap.request.work import Work


def with_sizes_of_calls(work: Work, mix: Mix) -> Work:
    """Of a built-in model: its inputs have few sizes that may be others, and most models have none."""
    free = free_sizes_at(find(work.model).package)
    if unknown := [name for name in mix.names if name not in free]:
        can = f"it has {', '.join(free)}" if free else "its inputs are fixed but for the batch"
        raise InvalidRequest(f"--shapes-from: {work.model} has no free size {unknown[0]!r}; {can}", code=CODE)
    for sizes in mix.sizes:
        for name, size in zip(mix.names, sizes, strict=True):
            least, most = free[name]
            if not least <= size <= most:
                raise InvalidRequest(
                    f"--shapes-from: {name} of {work.model} must be between {least} and {most} (got {size})", code=CODE
                )
    return msgspec.structs.replace(work, sizes_of_calls=mix)


def works_of_sizes(work: Work, data_seed: int, passed: tuple[str, ...]) -> list[Work]:
    """Open the work at each of its sizes; a size that the model refuses is an error that names it."""
    mix = work.mix
    assert mix is not None
    places = range(len(mix.sizes))
    if work.source is None:
        at_one = (Mix(mix.names, (mix.sizes[place],), (1,)) for place in places)
        others = [msgspec.structs.replace(work, sizes_of_calls=each) for each in at_one]
        return [work if place == mix.usual else others[place] for place in places]
    sources = work.source.at_each_size
    return [  # the usual one was opened already
        work if sources[place].dims == work.source.dims else _opened_at(work, sources[place], place, data_seed, passed)
        for place in places
    ]


def _opened_at(work: Work, source: Source, place: int, data_seed: int, passed: tuple[str, ...]) -> Work:
    assert work.source is not None
    assert work.mix is not None
    where, seeds = f"--shapes-from, {','.join(work.mix.names)} {work.mix.label(place)}", seeds_of_inputs(data_seed)
    try:
        folder, bundle = opened(source, seeds, passed=passed)
    except FairlapError as error:
        raise InvalidRequest(f"{where}: {error}", code=error.code) from None
    if not source.files:  # code made it again
        usual, _ = opened(work.source, seeds, passed=passed)
        if _digest(weights_file(folder)) != _digest(weights_file(usual)):
            raise InvalidRequest(
                f"{where}: {source.text} returned other weights than at its usual size; draw them from a seed, and let "
                "none depend on the size",
                code=CODE,
            )
    return msgspec.structs.replace(work, model=source.name, source=source, batch=bundle.batch)


def _digest(file: Path) -> str:
    with file.open("rb") as opened_file:
        return hashlib.file_digest(opened_file, "sha256").hexdigest()


def materials_of_sizes(materials: Materials, data_seed: int, passed: tuple[str, ...]) -> list[Materials]:
    """In the order of the mix."""
    works = works_of_sizes(materials.work, data_seed, passed)
    return [materials if each == materials.work else materials_for(each, data_seed, passed=passed) for each in works]
