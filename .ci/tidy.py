"""Run clang-tidy on the given files, two at a time, but not on those that were clean before and have not changed.

A file counts as unchanged while its text, every header of the engine, the checks, its compile command and the programs
stay the same. The keys of clean files are kept in build/lint.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BUILD = Path("build/lint")
CLEAN = BUILD / "clean"
TIDY = str(Path(sys.executable).parent / "clang-tidy")


def printed(*command: str) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def around_all_files() -> Iterator[bytes]:
    """Yield what the findings in every file depend on."""
    headers = printed("git", "ls-files", "-co", "--exclude-standard", "cpp/*.hpp", "cpp/*.h").split()
    for path in (*headers, b".clang-tidy"):
        yield path
        yield Path(path.decode()).read_bytes()
    yield printed(TIDY, "--version")
    yield printed("c++", "--version")  # whose standard library is included
    yield printed(sys.executable, "-c", "import pybind11, sys; print(pybind11.__version__, sys.version)")


def digest(parts: Iterator[bytes]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def keys_of(files: list[str]) -> dict[str, str]:
    """By file."""
    commands = {entry["file"]: entry["command"] for entry in json.loads((BUILD / "compile_commands.json").read_text())}
    around = digest(around_all_files()).encode()

    def key(file: str) -> str:
        return digest(iter([around, commands.get(str(Path(file).absolute()), "").encode(), Path(file).read_bytes()]))

    return {file: key(file) for file in files}


def check(file: str) -> tuple[bool, str]:
    """Return whether a file is clean, and the findings."""
    command = [TIDY, "--quiet", "--warnings-as-errors=*", "-p", str(BUILD), file]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def main(files: list[str]) -> int:
    keys = keys_of(files)
    known = set(CLEAN.read_text().split()) if CLEAN.exists() else set()
    changed = [file for file in files if keys[file] not in known]
    with ThreadPoolExecutor(2) as threads:
        found = dict(zip(changed, threads.map(check, changed), strict=True))
    CLEAN.write_text("\n".join(keys[file] for file in files if file not in found or found[file][0]))
    for clean, text in found.values():
        if not clean:
            print(text)
    return 0 if all(clean for clean, _ in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
