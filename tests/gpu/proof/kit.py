"""Packages for a machine without network: fetched here as wheels, and unpacked there where they are not installed.

``python -m tests.gpu.proof.kit --python 3.12`` fetches what the proof itself needs, but for what that machine has, so
that the kit and the repository together stay small. Frameworks may be added by name; they are large, and the proof does
without those that it is started ``--without``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from .machine import KIT, ROOT

NEEDED = (
    *("click", "hypothesis", "msgspec", "nvidia-ml-py", "numpy", "pybind11", "pytest", "pytest-timeout", "rich"),
    *("ruptures", "scipy"),
)
HAS = ("numpy", "scipy")  # 51 of 55 MB; a machine with PyTorch has them
MOST_MIB = 64.0  # what may travel to a lent machine, the repository included
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_WHEELS, _UNPACKED = "wheels", "unpacked"


def fetch(python: str, folder: Path, frameworks: Sequence[str], has: Sequence[str] = ()) -> list[Path]:
    """Download the wheels for one version of Python on Linux, with what they depend on, without what is there."""
    wheels = folder / _WHEELS
    wheels.mkdir(parents=True, exist_ok=True)
    subprocess.run(download_command(python, wheels, frameworks), check=True)
    for wheel in wheels.glob("*.whl"):
        if _name_of(wheel.stem.partition("-")[0]) in map(_name_of, has):
            wheel.unlink()
    return sorted(wheels.glob("*.whl"))


def _name_of(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def download_command(python: str, wheels: Path, frameworks: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--dest", str(wheels), "--only-binary", ":all:", "--python-version", python, "--implementation", "cp"]
    for platform in _PLATFORMS:
        command += ["--platform", platform]
    return [*command, *NEEDED, *frameworks]


def travels_mib(wheels: Sequence[Path]) -> float:
    """Return the size of the kit and of the files of the repository that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return sum(file.lstat().st_size for file in (*files, *wheels) if file.exists() or file.is_symlink()) / 2**20


def unpack_missing(folder: Path, report: Callable[[str], None]) -> list[str]:
    """Unpack each wheel of the kit whose package is not installed, and return the folders to put on the path.

    Installed packages stay in force: a framework must find the libraries that it came with.
    """
    into = folder / _UNPACKED / sysconfig.get_config_var("EXT_SUFFIX").strip(".").partition(".")[0]
    unpacked = []
    for wheel in sorted((folder / _WHEELS).glob("*.whl")):
        name, version, *tags = wheel.stem.split("-")
        if _is_installed(name) or not _is_for_this_python(tags):
            continue
        unpacked.append(f"{name} {version}")
        if not (into / f"{name}-{version}.dist-info").is_dir():
            with zipfile.ZipFile(wheel) as content:
                content.extractall(into)
    if unpacked:
        report(f"not installed here, taken from {folder}: {', '.join(unpacked)}")
    return [str(into)] if unpacked else []


_MODULES = {"nvidia-ml-py": "pynvml", "pytest-timeout": "pytest_timeout"}


def missing(paths: Sequence[str]) -> list[str]:
    """List what the proof needs and neither this Python nor the kit has."""
    folders = [*sys.path, *paths]
    return [name for name in NEEDED if PathFinder.find_spec(_MODULES.get(name, name), folders) is None]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _is_for_this_python(tags: Sequence[str]) -> bool:
    """Whether the tags, such as ``cp312-cp312-manylinux_2_28_x86_64``, name this interpreter."""
    pythons, abi = tags[-3].split("."), tags[-2]
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return (
        own in pythons or "py3" in pythons or (abi == "abi3" and any(re.fullmatch(r"cp3\d+", each) for each in pythons))
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.proof.kit", description=__doc__)
    parser.add_argument("--python", default="3.12", help="version of Python on that machine  [default: 3.12]")
    parser.add_argument("--to", type=Path, default=KIT, help="folder for the wheels")
    parser.add_argument(
        "--has", default=",".join(HAS), metavar="A,B", help="packages that it has, or none  [default: %(default)s]"
    )
    parser.add_argument("frameworks", nargs="*", help="more packages, such as 'jax[cuda13]' or cupy-cuda13x")
    given = parser.parse_args(arguments)
    try:
        wheels = fetch(given.python, given.to, given.frameworks, given.has.split(","))
    except subprocess.CalledProcessError as error:
        print(f"gpu-proof-kit: pip ended with status {error.returncode}", file=sys.stderr)
        return 2
    mib = sum(wheel.stat().st_size for wheel in wheels) / 2**20
    whole_mib = travels_mib(wheels)
    print(
        f"{len(wheels)} wheels, {mib:.0f} MiB, in {given.to / _WHEELS}; with the repository {whole_mib:.0f} MiB travel"
    )
    if whole_mib > MOST_MIB:
        print(
            f"gpu-proof-kit: {whole_mib:.0f} MiB are more than {MOST_MIB:g} MiB; name in HAS what the machine has",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
