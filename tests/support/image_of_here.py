"""A Docker image of the Python that runs the tests, made without a network or another image."""

from __future__ import annotations

import functools
import io
import re
import subprocess
import sys
import sysconfig
import tarfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

_HOME = "opt/python"
_LIBRARIES = "usr/local/lib/here"
_LEFT_OUT = ("site-packages", "dist-packages", "test", "__pycache__", "idlelib", "tkinter", "ensurepip")


@functools.cache
def _answers() -> bool:
    try:
        done = subprocess.run(["docker", "version"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


needs_docker = pytest.mark.skipif(not _answers(), reason="no Docker service answers here")


def import_image(tag: str) -> None:
    """Import an image with this Python as ``python3`` and NumPy, and nothing else."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    settings = [
        "ENV PATH=/opt/python/bin:/usr/bin:/bin",
        f"ENV LD_LIBRARY_PATH=/{_HOME}/lib:/{_LIBRARIES} PYTHONHOME=/{_HOME}",
    ]
    changes = [word for each in settings for word in ("--change", each)]
    docker = subprocess.Popen(
        ["docker", "import", *changes, "-", tag], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert docker.stdin is not None
    with docker.stdin as pipe, tarfile.open(fileobj=pipe, mode="w|", dereference=True) as archive:
        _write(archive, version)
    assert docker.wait() == 0


def remove_image(tag: str) -> None:
    subprocess.run(["docker", "image", "rm", "--force", tag], capture_output=True, check=False)


def _write(archive: tarfile.TarFile, version: str) -> None:
    interpreter = Path(sys.executable).resolve()
    standard = Path(sysconfig.get_path("stdlib"))
    archive.add(interpreter, f"{_HOME}/bin/python3")
    archive.add(standard, f"{_HOME}/lib/python{version}", filter=_kept)
    numpy = distribution("numpy")
    for top in sorted({each.parts[0] for each in numpy.files or ()} - {".."}):
        archive.add(str(numpy.locate_file(top)), f"{_HOME}/lib/python{version}/site-packages/{top}", filter=_kept)
    native = [interpreter, *standard.glob("lib-dynload/*.so"), *_native_modules()]
    for library in sorted(_libraries_of(native)):
        loader = library.startswith("/lib64/") or Path(library).name.startswith("ld-")
        archive.add(library, library.lstrip("/") if loader else f"{_LIBRARIES}/{Path(library).name}")
    temporary = tarfile.TarInfo("tmp")
    temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
    archive.addfile(temporary, io.BytesIO())


def _kept(found: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(found.name).parts
    if any(part in _LEFT_OUT and place > 3 for place, part in enumerate(parts)) and "numpy" not in found.name:
        return None
    return None if parts[-1] == "__pycache__" else found


def _native_modules() -> list[Path]:
    from fairlap.engine import _native  # the library of C++ that it needs

    return [Path(_native.__file__ or "")]


def _libraries_of(files: list[Path]) -> set[str]:
    """Also those of the C library that older programs name, which are empty now."""
    listed = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    found = {path for path in re.findall(r"(?:=> )?(/\S+) \(0x", listed) if Path(path).exists()}
    of_c = [Path(path).parent for path in found if Path(path).name == "libc.so.6"]
    older = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libm.so.6")
    return found | {str(folder / name) for folder in of_c for name in older if (folder / name).exists()}
