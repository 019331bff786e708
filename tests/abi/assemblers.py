"""Where NVIDIA's ptxas is: in Python packages of this environment, or in an installed toolkit."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .nvidia_headers import package_roots


@dataclass(frozen=True)
class Assembler:
    path: Path
    release: int  # of CUDA, such as 13
    capabilities: tuple[int, ...]  # such as 90, without variants for one architecture alone

    def assemble(self, source: Path, capability: int | str, out: Path) -> subprocess.CompletedProcess[str]:
        """For a capability such as 90, or "90a" for that architecture alone."""
        command = [str(self.path), "-v", "--gpu-name", f"sm_{capability}", str(source), "-o", str(out)]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def find_assemblers() -> list[Assembler]:
    """One for each release, newest first."""
    paths = _installed("ptxas")
    by_release: dict[int, Assembler] = {}
    for path in paths:
        found = _assembler(path)
        by_release.setdefault(found.release, found)
    return [by_release[release] for release in sorted(by_release, reverse=True)]


def find_disassembler() -> Path | None:
    """Look for nvdisasm, which few machines have."""
    return next(iter(_installed("nvdisasm")), None)


def _installed(program: str) -> list[Path]:
    parts = ("cu13", "cuda_nvcc", "cuda_nvdisasm")
    folders = [root / "nvidia" / part / "bin" for root in package_roots() for part in parts]
    folders += [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"]
    paths = [folder / program for folder in folders if (folder / program).is_file()]
    if installed := shutil.which(program):
        paths.append(Path(installed))
    return paths


def _assembler(path: Path) -> Assembler:
    version = re.search(r"release (\d+)\.", _output(path, "--version"))
    assert version is not None, f"{path} does not give its version"
    capabilities = sorted({int(number) for number in re.findall(r"'sm_(\d+)'", _output(path, "--help"))})
    return Assembler(path, int(version.group(1)), tuple(capabilities))


def _output(path: Path, option: str) -> str:
    return subprocess.run([str(path), option], capture_output=True, text=True, check=True).stdout
