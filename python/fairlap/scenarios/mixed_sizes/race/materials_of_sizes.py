"""What contestants are handed at each size of a mix: inputs, and the float64 reference's answers to them."""

from __future__ import annotations

import msgspec

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.launch.opened_source import opened
from fairlap.race.equal_work.material_sources import materials_for, seeds_of_inputs
from fairlap.race.equal_work.materials import Materials
from fairlap.request.work import Work


def works_of_sizes(work: Work, data_seed: int, passed: tuple[str, ...]) -> list[Work]:
    """Open the work at each of its sizes; a size that the model refuses is an error that names it."""
    assert work.source is not None
    assert work.mix is not None
    found = []
    for place, source in enumerate(work.source.at_each_size):
        if source.dims == work.source.dims:  # the size that it was opened with already
            found.append(work)
            continue
        try:
            _, bundle = opened(source, seeds_of_inputs(data_seed), passed=passed)
        except FairlapError as error:
            where = f"--shapes-from, {','.join(work.mix.names)} {work.mix.label(place)}"
            raise InvalidRequest(f"{where}: {error}", code=error.code) from None
        found.append(msgspec.structs.replace(work, model=source.name, source=source, batch=bundle.batch))
    return found


def materials_of_sizes(materials: Materials, data_seed: int, passed: tuple[str, ...]) -> list[Materials]:
    """In the order of the mix."""
    works = works_of_sizes(materials.work, data_seed, passed)
    return [materials if each == materials.work else materials_for(each, data_seed, passed=passed) for each in works]
