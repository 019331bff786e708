"""Suites that were written for other tools, as they are: benchmarks are found as the tool finds them, and race.

A folder or a Python file has benchmarks of asv and pytest-benchmark, a program those of Google Benchmark or nvbench,
and a package of cargo those of criterion.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.frameworks.programs.command import CommandFailed, CommandRun
from fairlap.frameworks.suites.child_process import BenchmarkFailed, BenchmarkProcess, Member, Reply
from fairlap.frameworks.suites.tools import ASV, PYTEST, TORCH
from fairlap.frameworks.suites.torch_operators import IN_A_CHECKOUT, OWN_FILES, REGISTERS, home_for, home_of
from fairlap.machine.files.folder_hash import code_files, folder_hash
from fairlap.machine.files.regular_file import content_of
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.pull_request.sides import CHANGE, python_of
from fairlap.request.commands import REPORT_FILE
from fairlap.request.published_suites import published_suites, suite_named
from fairlap.request.suite import E_SUITE, FoundRace, Suite, read_suite
from fairlap.request.units import LargestSlowdown
from fairlap.suggestions import did_you_mean
from fairlap.suite.suite_sides import Sides

_CARGO, _ASV_SETTINGS = "Cargo.toml", "asv.conf.json"
_OF_ASV = re.compile(rb"^\s*def\s+((time|timeraw|peakmem|mem|track)_|(Time|Timeraw|PeakMem|Mem|Track)[A-Z_])", re.M)
_OF_PYTEST = re.compile(rb"^\s*(async\s+)?def\s+\w+\([^)]*\bbenchmark\b", re.M)
_BENCHMARK_DIR = re.compile(r'^\s*"benchmark_dir"\s*:\s*"([^"]+)"', re.M)
_OF_CRITERION = re.compile(r"^(.+): bench(mark)?$", re.M)
_LIST_WITHIN_S = 600.0  # cargo builds first
_IN_PATTERNS = re.compile(r"([.^$*+?()\[\]{}|\\])")
_NVBENCH = re.compile(
    r"^## \[\d+\] `(?P<name>.+)` \(\d+ configurations\)$|"
    r"^\* `(?P<axis>.+)` : \w+(?P<flags> \[.+\])?$|"
    r"^  \* `(?P<value>.+?)`",
    re.M,
)


@dataclass(frozen=True)
class FoundOptions:
    """What a suite of another tool cannot say of its races: bounds, threads, and which code it is for."""

    max_slowdown: LargestSlowdown | None = None
    threads: int | None = None
    side: Path | None = None  # the change, by which benchmarks are listed; the current folder where none is given
    package: str = ""  # that is the change
    pass_env: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, sides: Sides, pass_env: tuple[str, ...], max_slowdown: LargestSlowdown | None, threads: int | None
    ) -> FoundOptions:
        return cls(max_slowdown, threads, sides.folders.get(CHANGE), sides.packages.get(CHANGE, ""), pass_env)

    @property
    def of_races(self) -> dict[str, Any]:
        given = {"max_slowdown": self.max_slowdown, "threads": self.threads}
        return {name: value for name, value in given.items() if value is not None}


def open_suite(path: Path, options: FoundOptions, notify: Callable[[str], None]) -> Suite:
    """Read a suite's own file or one that comes with fairlap, or find the benchmarks of another tool."""
    path = suite_named(path)
    if is_own_file(path):
        if given := next(iter(options.of_races), ""):
            raise InvalidRequest(f"--{given.replace('_', '-')}: write {given} in {path}, at its top", code=E_SUITE)
        return read_suite(path)
    if not path.exists():
        hint = did_you_mean(str(path), list(published_suites())) or "`fairlap list suites` lists those with a name"
        raise InvalidRequest(f"there is no {path}; {hint}", code=E_SUITE)
    races = tuple({each.name: each for each in _found(path, options, notify)}.values())
    if not races:
        raise InvalidRequest(
            f"{path} has no benchmark of asv, pytest-benchmark, PyTorch, Google Benchmark, nvbench or criterion",
            code=E_SUITE,
        )
    return Suite(path, suite_hash(path), races)


def suite_hash(path: Path) -> str:
    """Of a file, or of all code in the folder of the benchmarks."""
    place = _benchmark_folder(path)
    return folder_hash(place) if place.is_dir() else hashlib.sha256(content_of(place)).hexdigest()


def is_own_file(path: Path) -> bool:
    """Whether it is a suite of fairlap, which has all that its races need."""
    return path.suffix == ".toml" and path.name != _CARGO


def _found(path: Path, options: FoundOptions, notify: Callable[[str], None]) -> Iterator[FoundRace]:
    if path.name == _CARGO:
        yield from _of_cargo(path, options)
    elif path.is_file() and path.suffix not in (".py", ".json"):
        yield from _of_a_program(path, options)
    else:
        folder = _benchmark_folder(path)
        files = [each for each in code_files(folder) if each.suffix == ".py"] if folder.is_dir() else [folder]
        contents = [(each, content_of(each)) for each in files]
        of_torch = {each for each, content in contents if REGISTERS.search(content)}
        for member in _members_of_torch(folder, of_torch, options):
            yield from _of_python(member, options, notify)
        if of_torch and home_of(str(folder.absolute())):
            return
        contents = [(each, content) for each, content in contents if each not in of_torch]
        if any(_OF_ASV.search(content) for each, content in contents if not _is_test(each)):
            yield from _of_python(_member_of_asv(folder), options, notify)
        if any(_OF_PYTEST.search(content) for _, content in contents):
            yield from _of_python(Member(PYTEST, str(folder.absolute())), options, notify)


def _is_test(file: Path) -> bool:
    return file.name.startswith("test_") or file.stem.endswith("_test") or file.name == "conftest.py"


def _benchmark_folder(path: Path) -> Path:
    """Find where asv's settings say that benchmarks are; else the path itself."""
    settings = path / _ASV_SETTINGS if path.is_dir() else path
    if settings.name != _ASV_SETTINGS or not settings.is_file():
        return path
    found = _BENCHMARK_DIR.search(content_of(settings).decode("utf-8", "replace"))
    folder = settings.parent / (found[1] if found else "benchmarks")
    if not folder.is_dir():
        raise InvalidRequest(f"{settings}: its benchmark_dir, {folder}, is not a folder", code=E_SUITE)
    return folder


def _member_of_asv(path: Path) -> Member:
    """Of one file, its module alone."""
    path = path.absolute()
    if path.is_dir():
        return Member(ASV, str(path))
    return Member(ASV, str(path.parent), module=f"{path.parent.name}.{path.stem}")


def _members_of_torch(path: Path, files: Collection[Path], options: FoundOptions) -> list[Member]:
    """Of one file or folder below their home, its modules alone; of one around homes, each; of files elsewhere, all."""
    path = path.absolute()
    homes = {file: home_of(str(file.absolute())) for file in sorted(files)}
    if within := home_of(str(path)):
        parts = path.with_suffix("").relative_to(within).parts
        return [Member(TORCH, within, module=".".join(parts))] if files else []
    found = [Member(TORCH, home) for home in dict.fromkeys(filter(None, homes.values()))]
    if elsewhere := [file for file, home in homes.items() if not home]:
        module = "" if path.is_dir() else path.stem
        found.append(Member(TORCH, str(path), module=module, root=_home_for(elsewhere[0], options)))
    return found


def _home_for(file: Path, options: FoundOptions) -> str:
    side = [str(options.side / IN_A_CHECKOUT)] if options.side else []
    found = home_for(str(file.absolute()), (*side, *os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    if not found:
        raise InvalidRequest(
            f"{file} has PyTorch's operator benchmarks, but no folder has {' and '.join(OWN_FILES)}, which they need: "
            f"looked in its own and those above, there in {IN_A_CHECKOUT}, and in PYTHONPATH",
            code=E_SUITE,
        )
    return found


def _of_python(member: Member, options: FoundOptions, notify: Callable[[str], None]) -> Iterator[FoundRace]:
    if member.tool == PYTEST and not options.package and importlib.util.find_spec("pytest") is None:
        raise InvalidRequest(f"{member.suite} has tests; install pytest to race their benchmarks", code=E_SUITE)
    listed = _listed(member, options, notify)
    common: Mapping[str, Any] = {"tool": member.tool, "suite": member.suite, "root": listed.root, **options.of_races}
    for each in listed.found:
        tags = tuple(dict.fromkeys((member.tool, each.kind, *each.tags)))
        yield FoundRace(name=each.name, tags=tags, member=each.name, module=each.module, **common)
    for broken in listed.broken:
        yield FoundRace(name=broken.name, tags=(member.tool,), broken=broken.why, **common)


def _listed(member: Member, options: FoundOptions, notify: Callable[[str], None]) -> Reply:
    side = "" if options.package else str((options.side or Path.cwd()).absolute())
    with python_of(options.package, notify) as python:
        environment = own_environment(options.pass_env)
        with BenchmarkProcess("list", member, side, python=python, environment=environment) as process:
            try:
                return process.reply(_LIST_WITHIN_S)
            except BenchmarkFailed as error:
                raise InvalidRequest(f"{member.suite}: {member.tool} lists none: {error}", code=E_SUITE) from None


def _of_a_program(path: Path, options: FoundOptions) -> Iterator[FoundRace]:
    """Ask it as Google Benchmark is asked for its list, and then as nvbench is, which refuses options of others."""
    program = _relative(path, options)
    try:
        printed = _printed([program, "--benchmark_list_tests=true"], options)
    except InvalidRequest as error:
        try:
            printed = _printed([program, "--list"], options)
        except InvalidRequest:
            raise error from None
        for name, words in nvbench_runs(printed):
            yield _of_program(
                "nvbench", name, [program, *words, "--json", REPORT_FILE], path, options, reported="nvbench"
            )
        return
    for name in filter(None, map(str.strip, printed.splitlines())):
        filter_ = "^" + _IN_PATTERNS.sub(r"\\\1", name) + "$"
        words = [program, f"--benchmark_filter={filter_}", "--benchmark_format=json"]
        yield _of_program("google-benchmark", name, words, path, options)


def _of_cargo(path: Path, options: FoundOptions) -> Iterator[FoundRace]:
    manifest = ["--manifest-path", _relative(path, options)]
    for name in _OF_CRITERION.findall(_printed(["cargo", "bench", "--quiet", *manifest, "--", "--list"], options)):
        short = ["--warm-up-time", "0.3", "--measurement-time", "0.5", "--noplot"]
        words = ["cargo", "bench", "--quiet", *manifest, "--", "--exact", name[0], *short]
        yield _of_program("criterion", name[0], words, path, options)


def nvbench_runs(listed: str) -> Iterator[tuple[str, list[str]]]:
    """Read what nvbench lists: each benchmark with each combination of its axes' values, and the options for that."""
    benchmarks: list[tuple[str, dict[str, list[str]]]] = []
    for line in _NVBENCH.finditer(listed.partition("# Benchmarks\n")[2]):
        if line["name"]:
            benchmarks.append((line["name"], {}))
        elif line["axis"]:
            benchmarks[-1][1][line["axis"] + (line["flags"] or "").strip()] = []
        else:
            next(reversed(benchmarks[-1][1].values())).append(line["value"])
    for name, axes in benchmarks:
        for values in itertools.product(*axes.values()):
            chosen = [f"{axis}={value}" for axis, value in zip(axes, values, strict=True)]
            words = ["--devices", "0", "--benchmark", name, *(word for each in chosen for word in ("--axis", each))]
            yield f"{name} [{' '.join(chosen)}]" if chosen else name, words


def _of_program(
    tool: str, name: str, words: list[str], path: Path, options: FoundOptions, reported: str = ""
) -> FoundRace:
    reported = reported or f"{tool}:{name}"
    command = shlex.join(words)
    common: Mapping[str, Any] = {"tool": tool, "suite": str(path), **options.of_races}
    return FoundRace(name=name, tags=(tool,), command=command, reported=reported, **common)


def _relative(path: Path, options: FoundOptions) -> str:
    """Name it as both sides have it."""
    if options.package:
        raise InvalidRequest(f"{path} is a program, so give folders or commits, not releases", code=E_SUITE)
    for folder in (*([options.side] if options.side else []), Path.cwd()):
        if path.absolute().is_relative_to(folder.absolute()):
            return f"./{path.absolute().relative_to(folder.absolute())}"
    raise InvalidRequest(f"{path} is outside of the sides, so both would race the same program", code=E_SUITE)


def _printed(words: list[str], options: FoundOptions) -> str:
    run = CommandRun(
        words, str(options.side or Path.cwd()), keeps_output=True, environment=own_environment(options.pass_env)
    )
    try:
        run(within_s=_LIST_WITHIN_S)
    except CommandFailed as error:
        raise InvalidRequest(f"{shlex.join(words)} lists no benchmarks: {error}", code=E_SUITE) from None
    return run.output().decode("utf-8", "replace")
