"""Memory allocators that can replace the C library's.

Which are installed, which one this process uses, and how the C library's own behaves in it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

from fairlap.machine.root import THIS_MACHINE, Root

# Their files, by name; the newest first. Debian's packages install them under these names without a compiler.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc.so.1"),
    "tcmalloc": ("libtcmalloc.so.4", "libtcmalloc_minimal.so.4"),
    "mimalloc": ("libmimalloc.so.3", "libmimalloc.so.2"),
}


PRELOAD = "LD_PRELOAD"


def preloading(file: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Build the variable that loads this library before others that are preloaded."""
    return {PRELOAD: f"{file}:{environment.get(PRELOAD, '')}".rstrip(":")}


def library_folders() -> list[Path]:
    """Where the loader and environments keep libraries; a folder that is named in LD_LIBRARY_PATH comes first."""
    named = [Path(each) for each in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if each]
    machine = platform.machine()
    system = (f"/usr/lib/{machine}-linux-gnu", f"/lib/{machine}-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib")
    return [*named, Path(sys.prefix) / "lib", Path("/usr/local/lib"), *map(Path, system)]


def allocator_file(name: str) -> Path | None:
    """Find the library of this allocator, or None where it is not installed."""
    files = (folder / file for file in LIBRARIES[name] for folder in library_folders())
    return next((file.resolve() for file in files if file.is_file()), None)


def allocator_in_use(root: Root = THIS_MACHINE) -> str:
    """Find the library that this process takes memory from; empty where its path is unknown."""
    try:
        address = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
    except (AttributeError, OSError):
        return ""
    found = "" if address is None else file_mapped_at(address, root)
    return _behind_the_program(root) if found == os.path.realpath(sys.executable) else found


def _behind_the_program(root: Root) -> str:
    """Look past the entry for malloc of a program that is not position-independent, such as Debian's Python."""
    lines = (line.split(maxsplit=5) for line in root.lines("proc/self/maps"))
    mapped = list(dict.fromkeys(fields[5] for fields in lines if len(fields) == 6))
    preloaded = {os.path.realpath(each) for each in os.environ.get(PRELOAD, "").replace(":", " ").split()}
    allocators = [path for path in mapped if path in preloaded and name_of(path) in LIBRARIES]
    of_the_system = [path for path in mapped if Path(path).name.startswith(("libc.so", "libc-"))]
    return next(iter((*allocators, *of_the_system)), "")


def file_mapped_at(address: int, root: Root = THIS_MACHINE) -> str:
    for line in root.lines("proc/self/maps"):
        fields = line.split(maxsplit=5)
        low, _, high = fields[0].partition("-")
        if len(fields) == 6 and int(low, 16) <= address < int(high, 16):
            return fields[5]
    return ""


def name_of(path: str) -> str:
    """jemalloc for its library's path; the file's own name for one that is not known."""
    file = Path(path).name
    return next((name for name in LIBRARIES if file.startswith(f"lib{name}")), file)


_LARGE_BYTES = 128 << 20  # above any threshold that the C library chooses by itself


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks"]] + [
        (name, ctypes.c_size_t) for name in ["fsmblks", "uordblks", "fordblks", "keepcost"]
    ]


def keeps_freed_memory() -> bool:
    """Whether a large block comes from the heap, which is kept, and not from a mapping, which goes back at once."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return False
    library.mallinfo2.restype = _Mallinfo2
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    before = library.mallinfo2().hblks
    block = library.malloc(_LARGE_BYTES)
    mapped = library.mallinfo2().hblks - before
    library.free(block)
    return bool(block) and mapped == 0


def arenas_with_a_second_thread() -> int:
    """How many arenas the C library has when another thread has allocated too; 0 where it does not list them."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "malloc_info"):
        return 0

    def allocate() -> None:
        library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        library.free(library.malloc(ctypes.c_size_t(100_000)))

    other = Thread(target=allocate)
    other.start()
    other.join()
    text, size = ctypes.c_char_p(), ctypes.c_size_t()
    library.open_memstream.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(library.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    library.malloc_info(0, stream)
    library.fclose(stream)
    arenas = (text.value or b"").count(b"<heap nr=")
    library.free(text)
    return arenas
