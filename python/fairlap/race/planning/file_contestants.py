"""Contestants on several files of one model: each framework once for every file that it reads, or differentiates.

``openvino`` becomes ``openvino:file=model.onnx`` and ``openvino:file=model.tflite``. A contestant that names its file
keeps it, also where a conversion leads there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.launch.opened_source import opened
from fairlap.models.modes import MODES
from fairlap.models.sources.bundle import route_to
from fairlap.models.sources.contract import Bundle, Route
from fairlap.race.equal_work.material_sources import seeds_of_inputs
from fairlap.request.fields.source import Source
from fairlap.request.names import FILE, ContestantName
from fairlap.request.work import Work

_CODE = "E_CONTESTANT"


def on_files(
    contestants: tuple[ContestantName, ...], works: Sequence[Work], data_seed: int, *, fed: bool
) -> tuple[ContestantName, ...]:
    """Themselves, where no model is in several files."""
    several = [work for work in works if work.source is not None and work.source.exports]
    if not several:
        if named := next((name for name in contestants if name.file), None):
            raise InvalidRequest(
                f"{named.text}: {FILE}= is for several files of one model, such as model.onnx,model.tflite", code=_CODE
            )
        return contestants
    first = next((work for work in several if not MODES[work.mode].gives_outputs), several[0])
    assert first.source is not None
    if others := [work.model for work in works if work.source is None or work.source.text != first.source.text]:
        raise InvalidRequest(f"{first.source.text} names several files, which are raced alone: leave out {others[0]}")
    if fed or first.stages is not None:
        what = "--data feeds" if fed else "all from file to answer is timed of"
        raise InvalidRequest(f"{what} a model in one file; name one of {', '.join(first.source.file_names)}")
    seeds = seeds_of_inputs(data_seed)
    bundles = {
        file: opened(msgspec.structs.replace(first.source.of_file(file), files=()), seeds)[1]
        for file in first.source.file_names
    }
    return tuple(each for name in contestants for each in _on_each(name, first, first.source, bundles))


def _on_each(name: ContestantName, work: Work, source: Source, bundles: dict[str, Bundle]) -> Iterator[ContestantName]:
    files = ", ".join(bundles)
    if not name.framework or framework_named(name.framework).has_own_model:
        raise InvalidRequest(f"{name.text} reads none of {files}: several files race in frameworks alone", code=_CODE)
    if name.file:
        source.of_file(name.file)  # refuses another name
        yield name
        return
    framework = framework_named(name.framework)
    routes = {file: route_to(each, framework.name, framework.implementation) for file, each in bundles.items()}
    found = [file for file, route in routes.items() if _is_raced(route, work)]
    if not found:
        raise InvalidRequest(
            f"{name.text} reads none of {files} as it is; leave it out, or name a file to convert, such as "
            f"{name.text}:{FILE}={next(iter(bundles))}",
            code=_CODE,
        )
    yield from map(name.of_file, found)


def _is_raced(route: Route, work: Work) -> bool:
    """Gradients are taken of conversions too, as of an ONNX file. What has none is in the table, with the reason."""
    return route.is_native or (not MODES[work.mode].gives_outputs and not route.why_not)
