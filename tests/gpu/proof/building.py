"""Compile the native module in place with only a C++ compiler and pybind11's headers.

A machine with a GPU is often bare and without network, and then has neither CMake nor the build backend.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .machine import ROOT

HEADERS = "FAIRLAP_PYBIND11"  # a folder that holds pybind11/pybind11.h, for a Python without the package
_NOT_IN_THE_MODULE = ("fakes", "tests")
_FOR_X86 = re.compile(r"target_sources\(\S+ PRIVATE ([^)]+)\)")
_DEFINED_FOR_X86 = re.compile(r"target_compile_definitions\(\S+ PRIVATE (\w+)\)")
_OPTIONS_OF_A_FILE = re.compile(r'set_source_files_properties\((\S+) PROPERTIES COMPILE_OPTIONS "([^"]+)"\)')
_FLAGS = ("-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-pthread")


class CannotBuild(Exception):
    """Something needed is missing, or the compiler failed."""


def module_file() -> Path:
    return ROOT / "python/fairlap/engine" / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"


def build_module(report: Callable[[str], None] = print) -> Path:
    """Compile the module unless it is newer than its sources."""
    target = module_file()
    sources = _sources()
    if target.exists() and target.stat().st_mtime >= _newest(sources):
        return target
    compiler = _compiler()
    of_files = _options_of_files()
    options = [*_FLAGS, *_definitions(), f'-DFAIRLAP_VERSION="{_version()}"', *(f"-I{folder}" for folder in _headers())]
    report(f"compiling the engine: {len(sources)} files with {compiler}")
    with tempfile.TemporaryDirectory(prefix="fairlap-build-") as folder:
        objects = [Path(folder) / f"{number}.o" for number in range(len(sources))]

        def compiled(pair: tuple[Path, Path]) -> None:
            source, out = pair
            _run([compiler, *options, *of_files.get(source, ()), "-c", str(source), "-o", str(out)], source.name)

        with ThreadPoolExecutor(_jobs()) as pool:
            list(pool.map(compiled, zip(sources, objects, strict=True)))
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            _run([compiler, "-shared", "-pthread", *map(str, objects), "-ldl", "-o", str(temporary)], target.name)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    return target


def _sources() -> list[Path]:
    folders = [folder for folder in (ROOT / "cpp").iterdir() if folder.name not in _NOT_IN_THE_MODULE]
    found = {source for folder in folders for source in folder.rglob("*.cpp")}
    return sorted(found if _is_x86() else found - _sources_for_x86())


def _is_x86() -> bool:
    return platform.machine() in ("x86_64", "AMD64")


def _cmake_lists() -> list[Path]:
    return [path for path in (ROOT / "cpp").glob("*/CMakeLists.txt") if path.parent.name not in _NOT_IN_THE_MODULE]


def _sources_for_x86() -> set[Path]:
    return {
        cmake.parent / name
        for cmake in _cmake_lists()
        for names in _FOR_X86.findall(cmake.read_text())
        for name in names.split()
    }


def _definitions() -> list[str]:
    found = [name for cmake in _cmake_lists() for name in _DEFINED_FOR_X86.findall(cmake.read_text())]
    return [f"-D{name}" for name in found] if _is_x86() else []


def _options_of_files() -> dict[Path, list[str]]:
    """Each set of instructions has a file that is compiled for it."""
    return {
        cmake.parent / name: options.split(";")
        for cmake in _cmake_lists()
        for name, options in _OPTIONS_OF_A_FILE.findall(cmake.read_text())
    }


def _newest(sources: list[Path]) -> float:
    headers = (ROOT / "cpp").rglob("*.hpp")
    return max(path.stat().st_mtime for path in (*sources, *headers))


def _version() -> str:
    found = re.search(r'__version__ = "([0-9.]+)"', (ROOT / "python/fairlap/version.py").read_text())
    return found.group(1) if found else "0"


def _compiler() -> str:
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise CannotBuild("no C++ compiler found (c++, g++ or clang++); install one, or name it in CXX")


def _headers() -> list[str]:
    python = sysconfig.get_paths()["include"]
    if not (Path(python) / "Python.h").exists():
        raise CannotBuild(f"Python's headers are missing ({python}/Python.h); install this Python's dev package")
    return [str(ROOT / "cpp"), python, _pybind11()]


def _pybind11() -> str:
    chosen = os.environ.get(HEADERS)
    places = [chosen] if chosen else [*_of_package("pybind11"), *_of_package("torch")]
    for place in places:
        if (Path(place) / "pybind11/pybind11.h").exists():
            return place
    where = f"not in {chosen}" if chosen else "not as a package, and not among PyTorch's own headers"
    raise CannotBuild(f"pybind11's headers are {where}; name the folder that holds pybind11/pybind11.h in {HEADERS}")


def _of_package(name: str) -> list[str]:
    """Find a package without importing it, since importing PyTorch takes seconds."""
    found = importlib.util.find_spec(name)
    return [f"{folder}/include" for folder in (found.submodule_search_locations or [])] if found else []


def _jobs() -> int:
    return int(os.environ.get("FAIRLAP_BUILD_JOBS", 0)) or len(os.sched_getaffinity(0))


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()[-1:]
        raise CannotBuild(f"{what} did not compile: {lines[0] if lines else f'exit status {done.returncode}'}")
