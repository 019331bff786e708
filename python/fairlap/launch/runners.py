"""How each contestant's processes are started: an interpreter with its environment, or a program."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairlap.data.pipeline_choice import without_choice
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.frameworks.adapter_parts.http.http_options import http_options_in
from fairlap.frameworks.contract import Framework, Settings, Unsupported
from fairlap.frameworks.registry import framework_named, is_importable, place_of
from fairlap.launch.containers.container import MODULES, Container
from fairlap.launch.containers.images import PYTHON, image_named, missing_in
from fairlap.launch.environments import Environment, environment_with
from fairlap.launch.packages.installed_packages import hidden_by
from fairlap.launch.packages.interpreters import lacks_module
from fairlap.launch.packages.making import Making, making_of
from fairlap.launch.packages.origins import require_installable
from fairlap.launch.started_worker import python_worker
from fairlap.machine.hardware.processor import available_cores_by_node
from fairlap.machine.software import package_of
from fairlap.models.modes import MODES
from fairlap.request.fields.package_origin import INSTALLED_FIRST, is_pinned
from fairlap.request.fields.server_address import UNENCRYPTED, server_address
from fairlap.request.names import COMMAND, THREADS, ContestantName
from fairlap.request.work import Mode, Precision
from fairlap.suggestions import did_you_mean
from fairlap.worker.process_options import (
    CHECKOUT,
    ProcessOptions,
    process_options_in,
    why_no_allocator,
    without_process_options,
)
from fairlap.worker.serving import over_http
from fairlap.worker.slowdown import OPTION as SLOWDOWN
from fairlap.worker.slowdown import slowdown_in


class NotInstalled(FairlapError):
    """The framework or program of a contestant is not here."""

    code = "E_NOT_INSTALLED"


class NoRoute(FairlapError):
    """There is no way of a user's model into the framework of a contestant."""

    code = "E_UNSUPPORTED"


class NoNode(FairlapError):
    """The NUMA node that a contestant names is not here, or has too few cores."""

    code = "E_NUMA_NODE"


@dataclass(frozen=True)
class Runner:
    """How one contestant's processes are started, or why they cannot be (``missing``)."""

    name: ContestantName
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    missing: FairlapError | None = None
    adapter: str = ""
    settings: Settings | None = None  # None for a program
    scratch: Path = Path()  # of the race, where it may write
    passed: tuple[str, ...] = ()  # names of secret variables that it gets
    node_cores: tuple[int, ...] = ()  # of the NUMA node that it is bound to, those that this process may use
    of_installed: dict[str, str] = field(default_factory=dict)  # variables for what is installed for it alone
    container: Container | None = None  # that its processes run in; None for those of this machine

    def environment_with(self, **changes: Any) -> dict[str, str]:
        """Its environment with other settings than those of the race, such as another ``cache_folder``."""
        if self.settings is None:
            return self.environment
        changed = _environment(framework_named(self.name.framework), replace(self.settings, **changes))
        return {**changed, **self.of_installed}

    def cores(self, drawn: tuple[int, ...]) -> tuple[int, ...]:
        """Where its processes run: the cores that the block drew, or as many of its node, drawn ones first."""
        if not self.node_cores:
            return drawn
        own = sorted(self.node_cores, key=lambda core: (core not in drawn, core))
        return tuple(sorted(own[: len(drawn)]))


def runners_for(
    contestants: tuple[ContestantName, ...],
    threads: int,
    device: str,
    caches: Path,
    stack: ExitStack,
    report: Callable[[str], None],
    refused: Mapping[ContestantName, NoRoute] | None = None,
    precisions: tuple[Precision, ...] = (),
    passed: tuple[str, ...] = (),
) -> list[Runner]:
    """Prepare a runner for each contestant.

    A failed installation is the outcome of that contestant; the race continues. No environment is made for the
    ``refused``. ``precisions`` are those of the works; ``passed`` names secret variables that contestants get.

    Each gets a separate folder in ``caches``: it must not find what another contestant or an earlier race compiled.
    """
    frameworks = require_known(contestants)
    refused = refused or {}
    found = [
        Runner(name, missing=refused[name])
        if name in refused
        else _runner(name, frameworks.get(name), threads, device, str(caches / str(place)), stack, report, precisions)
        for place, name in enumerate(contestants)
    ]
    return [replace(runner, passed=passed, scratch=caches.parent) for runner in found]


def require_known(contestants: tuple[ContestantName, ...]) -> dict[ContestantName, type[Framework]]:
    """Find the adapters of all contestants but programs; raise InvalidRequest for an unknown name or variant."""
    frameworks = {name: framework_named(name.framework) for name in contestants if name.framework}
    for name in contestants:
        if over_http.OPTION in name.framework_options and (name.program or name.url):
            raise InvalidRequest(f"{name.text}: {over_http.OPTION}= puts frameworks behind a server, and nothing else")
        require_installable(name)
    for name, framework in frameworks.items():
        if name.variant not in framework.variants:
            known = ", ".join(
                f"{name.framework}:{variant}" if variant else name.framework for variant in framework.variants
            )
            meant = did_you_mean(name.variant, filter(None, framework.variants)) or f"it has {known}"
            raise InvalidRequest(f"{name.text}: {name.framework} has no variant {name.variant!r}; {meant}")
        if name.version and not framework.packages:
            raise InvalidRequest(f"{name.text}: {name.framework} has no versions, because it is not a package")
        if framework.has_own_model and not name.url:
            raise InvalidRequest(
                f"{name.text}: write the address of the server, such as http://127.0.0.1:8000/v2/models/NAME",
                code="E_CONTESTANT",
            )
        try:
            slowdown_in(dict(name.options))
            process_options_in(dict(name.options))
            over_http.over_http_in(name.framework_options)
            if name.url:
                server_address(name.url, schemes=UNENCRYPTED)
                http_options_in(name.framework_options)
        except (Unsupported, InvalidRequest) as error:
            raise InvalidRequest(f"{name.text}: {error}", code=getattr(error, "code", "")) from None
        if why := _why_no_options(name, framework):
            raise InvalidRequest(f"{name.text}: {why}")
    return frameworks


def require_modes(frameworks: Mapping[ContestantName, type[Framework]], modes: tuple[Mode, ...]) -> None:
    """Refuse a variant that exists for training alone. Otherwise a mode that a contestant lacks is an outcome."""
    for name, framework in frameworks.items():
        own = framework.modes_of.get(name.variant, ())
        if not own or any(facts.gives_outputs for mode, facts in MODES.items() if mode in own):
            continue
        for mode in modes:
            if why := framework.why_no_mode(name.variant, mode):
                raise InvalidRequest(f"{why}; leave it out", code="E_CONTESTANT")


def _why_no_options(name: ContestantName, framework: type[Framework]) -> str:
    """Explain which of its options the framework lacks, or cannot be part of every candidate of a search.

    Those of a framework that declares none are left to its process, unless it is searched, and those of a server are
    checked by themselves.
    """
    threads = dict(name.options).get(THREADS, "1")
    if name.best and (not threads.isdecimal() or int(threads) < 1):
        return f"{THREADS} must be a whole number above 0 (got {threads})"
    declares = (framework.options or framework.options_of) and not framework.has_own_model
    if not (name.best or declares):
        return ""
    own = without_process_options(without_choice(over_http.without_server(name.framework_options)))
    own.pop(SLOWDOWN, None)
    return framework.why_no_option(name.variant, own)


def _runner(
    name: ContestantName,
    framework: type[Framework] | None,
    threads: int,
    device: str,
    cache_folder: str,
    stack: ExitStack,
    report: Callable[[str], None],
    precisions: tuple[Precision, ...],
) -> Runner:
    if framework is None:
        program = shutil.which(name.program)
        if program is None:
            return Runner(name, missing=NotInstalled(f"{name.program} is not an executable program"))
        return Runner(name, (str(Path(program).resolve()),), adapter=name.program)
    settings = Settings(name.threads(threads), name.variant, device, name.framework_options, cache_folder=cache_folder)
    behind_server = over_http.OPTION in name.framework_options
    of_installed: dict[str, str] = {}
    container: Container | None = None
    try:
        node_cores = _require_available(process_options_in(settings.options), settings.threads)
        if runs_here(name, framework):
            if behind_server and (lacking := [each for each in over_http.SERVER_MODULES if find_spec(each) is None]):
                raise NotInstalled(f"its server needs {' and '.join(lacking)}; install fairlap[serve]")
            command = python_worker()
        elif why := framework.why_not_on(device, name.variant):  # before anything is installed for it
            raise NoRoute(why)
        elif name.image:
            command = python_worker(PYTHON)[1:]
            container = _container(name, framework)
            of_installed = {INSTALLED_FIRST: "1", "HOME": cache_folder}
        else:
            needed, making = requirements_of(name, framework, device, precisions), making_of(name.options)
            made = stack.enter_context(environment_with(needed, report, making))
            _require_found(name, made)
            _require_module(name, framework, made, making)
            command, of_installed = _in_environment(name, made, making)
    except FairlapError as error:
        return Runner(name, missing=error)
    return Runner(
        name,
        command,
        {**_environment(framework, settings), **of_installed},
        adapter=place_of(name.framework),
        settings=settings,
        node_cores=node_cores,
        of_installed=of_installed,
        container=container,
    )


def _container(name: ContestantName, framework: type[Framework]) -> Container:
    """Find its image, whose Python has to have the framework."""
    image = image_named(name.image)
    modules = (framework.module, *MODULES.values())
    missing = missing_in(image, modules)
    if framework.module in missing:
        raise NotInstalled(f"the image {image.name} has no {framework.module}")
    return Container(image, missing)


def _in_environment(name: ContestantName, made: Environment, making: Making) -> tuple[tuple[str, ...], dict[str, str]]:
    """Name its worker and variables for it; that of a command is of this environment, and starts it in the other."""
    if name.framework == COMMAND:
        path = os.pathsep.join(filter(None, (str(made.python.parent), os.environ.get("PATH", ""))))
        return python_worker(), {**making.variables, "PATH": path, "VIRTUAL_ENV": str(made.folder)}
    return python_worker(made.python), {**making.variables, **({INSTALLED_FIRST: "1"} if name.release else {})}


def runs_here(name: ContestantName, framework: type[Framework]) -> bool:
    """In the current environment, or from a checkout; others run in an environment that is made for them."""
    return not name.is_apart and (CHECKOUT in name.framework_options or is_importable(framework))


def _environment(framework: type[Framework], settings: Settings) -> dict[str, str]:
    return {**framework.environment_for(settings), **process_options_in(settings.options).environment()}


def _require_available(options: ProcessOptions, threads: int) -> tuple[int, ...]:
    """Find the cores of the NUMA node, where one is named, and raise what a machine lacks for these options."""
    if why := why_no_allocator(options.allocator):
        raise NotInstalled(why)
    if options.node is None:
        return ()
    nodes = available_cores_by_node()
    cores = nodes.get(options.node, ())
    if not cores:
        listed = ", ".join(map(str, nodes)) or "none that the system describes"
        raise NoNode(f"no core of NUMA node {options.node} is available to this process; nodes here: {listed}")
    if threads > len(cores):
        raise NoNode(f"{threads} threads need as many cores, and NUMA node {options.node} has {len(cores)} of them")
    return cores


def requirements_of(
    name: ContestantName, framework: type[Framework], device: str = "cpu", precisions: tuple[Precision, ...] = ()
) -> tuple[str, ...]:
    """List the packages; a requested version or release replaces what fairlap was tested with, and the others stay."""
    if name.release and not is_pinned(name.release):
        raise InvalidRequest(
            f"{name.text}: {name.release} was not found when the race was planned; plan it again", code="E_CONTESTANT"
        )
    packages = framework.packages_for(device, name.of(precisions))
    if "/" in name.python:  # the packages of that environment are used
        packages = packages[:1] if name.version else ()
    if over_http.OPTION in name.framework_options:
        packages = (*packages, *over_http.SERVER_PACKAGES)
    if name.version:
        first, *others = packages
        packages = (f"{first.partition('==')[0]}{name.version}", *others)
    return _with_release(packages, name.release) if name.release else packages


def _require_found(name: ContestantName, made: Environment) -> None:
    """Refuse a folder of PYTHONPATH from which the package would be imported in place of the one that was asked for."""
    places = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    hidden = hidden_by(made, package_of(name.release), places) if name.release else None
    if hidden is not None:
        raise InvalidRequest(
            f"{hidden[0]} would be imported from {hidden[1]}, which PYTHONPATH names, in place of what was installed",
            code="E_CONTESTANT",
        )


def _require_module(name: ContestantName, framework: type[Framework], made: Environment, making: Making) -> None:
    """Refuse an environment of the user that lacks the framework, which is not installed into it."""
    if "/" not in name.python or not framework.packages:
        return
    if lacks_module(made.python, framework.module, making.variables):
        package = package_of(framework.packages[0])
        raise NotInstalled(
            f"{name.python} has no {framework.module}; install it there: {name.python} -m pip install {package}"
        )


def _with_release(packages: Sequence[str], release: str) -> tuple[str, ...]:
    """In the place of a requirement of the same package, whose extras it keeps."""
    package, extras, others = package_of(release), "", []
    for each in packages:
        if package_of(each) == package:
            extras = "".join(re.findall(r"\[.*\]", each))
        else:
            others.append(each)
    bare = re.split(r"==| @ ", release, maxsplit=1)[0]
    return (f"{bare}{extras}{release.removeprefix(bare)}", *others)
