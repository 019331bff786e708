"""Where the imports of a benchmark come from: its own files from the suite, and all that a side has from that side.

The current folder may hold another version of the project, and pytest puts folders of tests before all others. Only
the standard library is imported here, since this runs in the process whose memory may be measured.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_SOURCES = "src"  # where many checkouts have their packages


class SideFirst:
    """A finder that is asked before all others. ``own`` are top-level modules of the suite and where each is found."""

    def __init__(self, side: str, own: Mapping[str, str]) -> None:
        folder = Path(side)
        self.places = [str(each) for each in (folder, folder / _SOURCES) if each.is_dir()] if side else []
        self._own = own

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or name in sys.stdlib_module_names:
            return None
        if name in self._own:
            return PathFinder.find_spec(name, [self._own[name]]) if self._own[name] else None
        found = PathFinder.find_spec(name, self.places)
        # A folder without __init__.py, such as docs, must not hide an installed package of its name.
        return found if found is not None and found.has_location else None

    def install(self) -> None:
        sys.meta_path.insert(0, self)
        sys.path[:0] = self.places


def imports_from(side: str, own: Mapping[str, str], suite: str) -> bool:
    """Whether a module of this process comes from the side, other than those of the suite."""
    folder, files = Path(side).resolve(), Path(suite).resolve()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or name.partition(".")[0] in own:
            continue
        path = Path(file).resolve()
        if path.is_relative_to(folder) and not path.is_relative_to(files):
            return True
    return False
