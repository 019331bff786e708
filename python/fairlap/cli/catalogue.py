"""The models, frameworks and devices that can be raced, listed without importing any framework."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Framework
from fairlap.frameworks.registry import framework_named, framework_names, is_importable
from fairlap.models.names import workload_names
from fairlap.models.registry import find
from fairlap.models.spec import Spec, Tensor
from fairlap.printed_document import PrintedDocument
from fairlap.request.names import FILE
from fairlap.request.work import PRECISIONS_OF_MODELS
from fairlap.results.prices import PriceEntry

if TYPE_CHECKING:
    from fairlap.models.operations.listed import Listed
    from fairlap.models.sources.contract import Bundle

_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PART_OF_PYTHON = "builtins"


@dataclass(frozen=True)
class ListedModel:
    """``broken`` says why a model that another package brings cannot be loaded; then there is nothing else."""

    name: str
    task: str = ""
    parameters: int | None = None
    gmacs_per_item: float | None = None
    modes: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    batch: int | None = None
    data_set: str = ""  # that it learns unless other data are given; empty for a model without one
    broken: str = ""


@dataclass(frozen=True)
class ListedFramework:
    """``version`` is that of the package that is installed here, or None: then an environment is made for it."""

    name: str
    here: bool = False
    version: str | None = None
    variants: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    broken: str = ""


@dataclass(frozen=True)
class ListedSuite:
    """One that comes with fairlap."""

    name: str
    races: int
    tags: tuple[str, ...]
    file: str


@dataclass(frozen=True)
class ListedDevice:
    """``absent`` says why there is none of its kind."""

    name: str  # what --device takes
    what: str = ""
    cores: int | None = None  # that this process may run on
    driver_cuda: str | None = None
    absent: str = ""


@dataclass(frozen=True)
class ListedData:
    """A built-in set. ``absent`` says why it cannot be loaded here."""

    name: str
    items: int | None = None
    held_out: int | None = None
    item: tuple[int, ...] = ()  # the shape of one item's input
    classes: tuple[str, ...] = ()  # none for a set of values
    origin: str = ""
    licence: str = ""
    absent: str = ""


@dataclass(frozen=True)
class ListedOperation:
    """Figures are those of one call in fp32."""

    name: str  # what `fairlap compare` takes
    kind: str
    sizes: Mapping[str, int]
    lists: tuple[str, ...]
    operations: int  # multiplications and additions
    bytes: int  # each array once
    operations_per_byte: float
    bytes_to_race: int  # about what a race needs


@dataclass(frozen=True)
class ListedRoute:
    """``why_not`` is empty where there is a route."""

    framework: str
    here: bool
    route: str
    why_not: str
    conversion_s: float | None = None
    precisions: tuple[str, ...] = ()
    no_precision: Mapping[str, str] = field(default_factory=dict)  # why it lacks the others


class ListedRoutes(PrintedDocument, frozen=True, tag="fairlap.routes/1"):
    """The inputs as they were bound, with what is drawn for them, and the frameworks that can run the model."""

    source: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    reference: str
    routes: tuple[ListedRoute, ...]
    notices: tuple[Notice, ...]


class ModelList(PrintedDocument, frozen=True, tag="fairlap.models/1"):
    models: list[ListedModel]


class OperationList(PrintedDocument, frozen=True, tag="fairlap.operations/1"):
    operations: list[ListedOperation]


class DataList(PrintedDocument, frozen=True, tag="fairlap.data-sets/1"):
    data_sets: list[ListedData]


class FrameworkList(PrintedDocument, frozen=True, tag="fairlap.frameworks/1"):
    frameworks: list[ListedFramework]


class DeviceList(PrintedDocument, frozen=True, tag="fairlap.devices/1"):
    devices: list[ListedDevice]


class SuiteNames(PrintedDocument, frozen=True, tag="fairlap.suites/1"):
    suites: list[ListedSuite]


class PriceList(PrintedDocument, frozen=True, tag="fairlap.prices/1"):
    file: str  # that holds them
    prices: list[PriceEntry]


def routes(text: str, bindings: Mapping[str, Any], notify: Callable[[str], None]) -> ListedRoutes:
    """Open the model in a separate process and list its routes to the frameworks."""
    from fairlap.launch.opened_source import opened
    from fairlap.models.sources.file_contents import what_is_at
    from fairlap.race.equal_work.material_sources import seeds_of_inputs
    from fairlap.race.planning.sources_from_request import sources_named
    from fairlap.request.names import Contestants
    from fairlap.request.race_request import RaceRequest

    request = RaceRequest(models=(text,), contestants=Contestants("torch"), **bindings)
    named = sources_named(request, text)
    if not named:
        usual = "built-in models run on what `fairlap list models` shows"
        raise InvalidRequest(f"{text} is not a model file; {what_is_at(text) or usual}")
    files = named[0].file_names
    found = []
    for file in files or ("",):
        source = named[0].of_file(file) if file else named[0]
        _, bundle = opened(source, seeds_of_inputs(0), notify)
        found += [each for each in _routes_of(bundle, file) if not file or each.route.startswith("native")]
    _, bundle = opened(named[0], seeds_of_inputs(0))
    found.sort(key=lambda each: bool(each.why_not))
    spec = bundle.spec
    return ListedRoutes(bundle.source.name, spec.inputs, spec.outputs, bundle.reference, tuple(found), bundle.notices)


def _routes_of(bundle: Bundle, file: str) -> Iterator[ListedRoute]:
    """To each framework; ``file`` is the one of several of the model, or empty."""
    from fairlap.models.sources.bundle import route_to

    for name in framework_names():
        adapter = framework_named(name)
        if adapter.has_own_model:
            continue
        route = route_to(bundle, name, adapter.implementation)
        if not route.why_not and (why := _why_nothing_runs(adapter, bundle.spec)):
            route = msgspec.structs.replace(route, name="", why_not=why)
        lacks = {each: adapter.why_not_in(each) or route.why_not_in(each) for each in PRECISIONS_OF_MODELS}
        yield ListedRoute(
            f"{name}:{FILE}={file}" if file else name,
            is_importable(adapter),
            route.name,
            route.why_not,
            route.conversion_s,
            tuple(precision for precision, why in lacks.items() if not why),
            {precision: why for precision, why in lacks.items() if why and not route.why_not},
        )


def _why_nothing_runs(adapter: type[Framework], spec: Spec) -> str:
    """Explain why there is nothing that the framework could do with a model to which it has a route."""
    if adapter.generates_only and not spec.continuation:
        return adapter.why_only_generates()
    reasons = [adapter.why_no_mode("", mode) for mode in spec.modes]
    return reasons[0] if all(reasons) else ""


def models() -> list[ListedModel]:
    return [_model(name) for name in workload_names()]


def operations(patterns: Sequence[str]) -> list[ListedOperation]:
    """Of the published lists, each once; all of them without a pattern. A name lists an operation of any sizes."""
    from fairlap.models.operations.kinds import operation_named
    from fairlap.models.operations.listed import Listed, listed_operations, operations_matching

    found: dict[str, Listed] = {} if patterns else {each.operation.name: each for each in listed_operations()}
    for pattern in patterns:
        listed = [each for each in listed_operations() if each.matches(pattern)]
        own = operation_named(pattern)
        if not listed and own is not None:
            listed = [Listed(own, ())]
        for each in listed or operations_matching(pattern):
            found[each.operation.name] = each
    return [_operation(each) for each in found.values()]


def data_sets() -> list[ListedData]:
    from fairlap.data.labelled.built_in import BUILT_IN

    return [_data(name) for name in BUILT_IN]


def frameworks() -> list[ListedFramework]:
    from importlib.metadata import packages_distributions

    brought_by = packages_distributions()
    return [_framework(name, brought_by) for name in framework_names()]


def devices() -> list[ListedDevice]:
    """Look for CUDA devices by starting the driver, without a framework."""
    from fairlap.engine.cuda.floor import cuda_floors
    from fairlap.machine.facts import machine_facts

    cpu = ListedDevice("cpu", machine_facts().get("cpu model", ""), cores=len(os.sched_getaffinity(0)))
    found, absent = cuda_floors()
    if found is None:
        return [cpu, ListedDevice("cuda", absent=absent)]
    return [
        cpu,
        *(ListedDevice(f"cuda:{each['device']}", each["name"], driver_cuda=each["driver_cuda"]) for each in found),
    ]


def _model(name: str) -> ListedModel:
    try:
        spec = find(name).spec
    except InvalidRequest as error:
        return ListedModel(name, broken=str(error))
    return ListedModel(
        name,
        spec.task,
        spec.parameters,
        spec.gmacs_per_item,
        spec.modes,
        spec.precisions,
        spec.default_batch,
        spec.data_set,
    )


def suites() -> list[ListedSuite]:
    from fairlap.request.published_suites import published_suites
    from fairlap.request.suite import read_suite

    found = []
    for name, file in published_suites().items():
        races = read_suite(file).races
        tags = tuple(dict.fromkeys(tag for each in races for tag in each.tags))
        found.append(ListedSuite(name, len(races), tags, str(file)))
    return found


def _operation(listed: Listed) -> ListedOperation:
    found = listed.operation
    return ListedOperation(
        found.name,
        found.kind,
        {name: int(size) for name, size in asdict(found).items()},
        listed.lists,
        found.operations,
        found.bytes,
        found.intensity,
        found.bytes_to_race,
    )


def _data(name: str) -> ListedData:
    from fairlap.data.labelled.built_in import labelled_set

    try:
        found = labelled_set(name)
    except InvalidRequest as error:
        return ListedData(name, absent=str(error))
    held = len(found.held_labels)
    item = next(iter(found.inputs.values())).shape[1:]
    return ListedData(name, len(found.labels) + held, held, item, found.classes, found.origin, found.licence)


def _framework(name: str, brought_by: Mapping[str, Sequence[str]]) -> ListedFramework:
    try:
        adapter = framework_named(name)
    except InvalidRequest as error:
        return ListedFramework(name, broken=str(error))
    here = is_importable(adapter)
    return ListedFramework(
        name,
        here,
        _installed_version(adapter, brought_by) if here else None,
        adapter.variants,
        adapter.modes,
        adapter.precisions,
        adapter.packages,
    )


def _installed_version(adapter: type[Framework], brought_by: Mapping[str, Sequence[str]]) -> str | None:
    """Of the package that it is installed from, else of the one that brings the module: some have several names."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    if adapter.module == _PART_OF_PYTHON:
        return platform.python_version()
    named = [found[0] for text in adapter.packages[:1] if (found := _PACKAGE.match(text))]
    for package in (*named, *brought_by.get(adapter.module.partition(".")[0], ())):
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return None
