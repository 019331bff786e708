"""Where NVIDIA's headers lie: in Python packages of this environment, or in an installed toolkit."""

import functools
import os
import re
import site
import sys
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("cuda", "cupti", "nvml")


@dataclass(frozen=True)
class Headers:
    """The headers of one CUDA release. Which of the three libraries' are there differs by package."""

    folders: tuple[Path, ...]
    extra_folders: tuple[Path, ...] = ()  # searched last, for headers that a package leaves out

    def file(self, name: str) -> Path | None:
        return next((folder / name for folder in self.folders if (folder / name).is_file()), None)

    @property
    def cuda_version(self) -> int:
        header = self.file("cuda.h")
        match = re.search(r"#define CUDA_VERSION (\d+)", header.read_text(errors="replace")) if header else None
        assert match is not None, f"no CUDA_VERSION in {self.folders}"
        return int(match.group(1))

    def has(self, library: str) -> bool:
        return self.file(f"{library}.h") is not None

    @functools.cache  # noqa: B019  (of a handful of releases)
    def text_of(self, library: str) -> str:
        """All that the library's headers declare, without comments."""
        text = "\n".join(
            path.read_text(errors="replace")
            for folder in self.folders
            for path in sorted([*folder.glob(f"{library}*.h"), *folder.glob("generated_cuda_meta.h")])
        )
        return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)

    @functools.cache  # noqa: B019
    def names_in(self, library: str) -> frozenset[str]:
        return frozenset(re.findall(r"\w+", self.text_of(library)))

    def newest(self, library: str, pattern: str) -> str:
        """Find the highest-numbered of the names that `NAME*` stands for; other patterns stand for themselves."""
        if not pattern.endswith("*"):
            return pattern
        stem = pattern.removesuffix("*")
        numbers = {int(number or 1) for number in re.findall(rf"\b{stem}(\d*);", self.text_of(library))}
        assert numbers, f"no {pattern} in the headers of CUDA {self.cuda_version}"
        newest = max(numbers)
        return stem if newest == 1 else f"{stem}{newest}"


def find_headers() -> list[Headers]:
    """Every release found, newest first; one for each version."""
    by_version: dict[int, Headers] = {}
    sets = [[roots / "nvidia/cu13/include"] for roots in package_roots()] + [
        [roots / f"nvidia/{part}/include" for part in ("cuda_runtime", "cuda_cupti", "nvml_dev")]
        for roots in package_roots()
    ]
    if listed := os.environ.get("FAIRLAP_NVIDIA_HEADERS"):
        sets = [[Path(folder) for folder in one.split(",")] for one in listed.split(os.pathsep)]
    else:
        toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
        sets.append([toolkit / "include", toolkit / "extras/CUPTI/include"])
    spare = tuple(folders[0] for folders in sets if (folders[0] / "crt").is_dir())
    for folders in sets:
        there = tuple(folder for folder in folders if folder.is_dir())
        headers = Headers(there, tuple(folder for folder in spare if folder not in there))
        if headers.has("cuda"):
            known = by_version.get(headers.cuda_version)
            if known is None or _completeness(headers) > _completeness(known):
                by_version[headers.cuda_version] = headers
    return [by_version[version] for version in sorted(by_version, reverse=True)]


def _completeness(headers: Headers) -> int:
    return sum(headers.has(library) for library in LIBRARIES)


def package_roots() -> list[Path]:
    roots = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    return list(dict.fromkeys(Path(root) for root in roots if root))
