"""Wheels that a test writes by hand, and pip's settings under which it installs them without a network."""

from __future__ import annotations

import base64
import hashlib
import sysconfig
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path

from fairlap.launch.environments import WORKER_NEEDS
from histories_of_commits import SOURCE

STEPS = 20_000


def write_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    needs: Sequence[str] = (),
    tag: str = "py3-none-any",
) -> Path:
    """Write a wheel by PEP 427, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    requirements = "".join(f"Requires-Dist: {each}\n" for each in needs)
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{path},{_digest(text)},{len(text.encode())}\n" for path, text in contents.items())
    found = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(found, "w") as archive:
        for path, text in {**contents, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return found


def write_releases(
    folder: Path, versions: Sequence[str], *, slow_from: str, broken: Sequence[str] = (), steps: int = STEPS
) -> None:
    """Write releases of ``hotpkg``, whose callable takes 30 % longer from one on; broken ones do not install."""
    place = versions.index(slow_from)
    for number, version in enumerate(versions):
        taken = int((1.3 if number >= place else 1.0) * steps)
        source = SOURCE.format(number=number, steps=taken)
        needs = ("a-package-that-is-nowhere",) if version in broken else ()
        write_wheel(folder, "hotpkg", version, {"hotpkg.py": source}, needs=needs)


def offline_variables(folder: Path, *packages: str) -> dict[str, str]:
    """Write wheels of what every worker needs, and of these packages, which take them from where the tests run."""
    here = sysconfig.get_path("purelib")
    for name in (*WORKER_NEEDS, *packages):
        name, _, wanted = name.partition("==")
        spelled = name.replace("-", "_")
        write_wheel(folder, spelled, wanted or installed_version(name), {f"{spelled}_from_here.pth": f"{here}\n"})
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_CONFIG_FILE": "/dev/null",
    }


def _digest(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


_BACKEND = '''\
"""Builds a wheel without any other package, of so many steps as the variable HOT_STEPS or the file says."""
import os
import zipfile


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with open(os.environ.get("LIST_OF_BUILDS", os.devnull), "a") as builds:
        builds.write("built\\n")
    with open("left_by_the_build", "w") as left:
        left.write("as setuptools leaves build/ and *.egg-info")
    with open("steps") as file:
        steps = int(os.environ.get("HOT_STEPS") or file.read())
    if steps < 0:
        raise RuntimeError(f"cannot take {steps} steps")
    with open("hotpkg.py.in") as file:
        source = file.read().replace("STEPS", str(steps))
    name, info = "hotpkg-1.0-py3-none-any.whl", "hotpkg-1.0.dist-info"
    files = {
        "hotpkg.py": source,
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: hotpkg\\nVersion: 1.0\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\\n" for path in (*files, f"{info}/RECORD")))
    return name
'''
_PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "hotpkg"
version = "1.0"
"""


def write_source(folder: Path, *, steps: int) -> Path:
    """Write a project whose build needs no network; its callable takes these steps, or those of ``HOT_STEPS``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(_PROJECT)
    (folder / "backend.py").write_text(_BACKEND)
    (folder / "hotpkg.py.in").write_text(SOURCE.format(number=1, steps="STEPS"))
    (folder / "steps").write_text(f"{steps}\n")
    return folder
