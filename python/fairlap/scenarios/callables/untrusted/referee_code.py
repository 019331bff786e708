"""The reference and the drawing of inputs: the user's own code, imported in this process without a contestant's.

No folder that holds a contestant is searched for modules, since a module there could take the place of one that is
imported here later.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlap.errors import InvalidRequest, described
from fairlap.suggestions import part_named


@dataclass(frozen=True)
class CallableName:
    """``FILE.py:NAME`` or ``MODULE:NAME``; the module must be an installed one."""

    text: str
    place: str
    name: str

    @property
    def file(self) -> Path | None:
        return Path(self.place).absolute() if self.place.endswith(".py") else None


def callable_name(text: str) -> CallableName:
    place, colon, name = text.rpartition(":")
    if not colon or not place or not all(part.isidentifier() for part in name.split(".")):
        raise InvalidRequest(f"{text!r} is not of the form FILE.py:CALLABLE or MODULE:CALLABLE")
    found = CallableName(text, place, name)
    if found.file is not None and not found.file.is_file():
        raise InvalidRequest(f"{place} does not exist")
    return found


def imported(text: str, contestants: Sequence[CallableName]) -> Callable[..., Any]:
    """Import the user's own callable; refuse one from a contestant's file, which would run here."""
    name = callable_name(text)
    files = [each.file.resolve() for each in contestants if each.file is not None]
    if name.file is not None and name.file.resolve() in files:
        raise InvalidRequest(f"{text} is in a contestant's file, which runs in its sandbox only; use another file")
    try:
        module = importlib.import_module(name.place) if name.file is None else _module_of(name.file, files)
        found = part_named(module, name.name, name.place)
    except InvalidRequest:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"{text} cannot be imported: {described(error)}") from error
    if not callable(found):
        raise InvalidRequest(f"{text} is not callable (its type is {type(found).__name__})")
    function: Callable[..., Any] = found
    return function


def _module_of(file: Path, contestants: Sequence[Path]) -> Any:
    folder = file.resolve().parent
    module_name = f"_fairlap_referee_{file.stem}"
    if module_name in sys.modules and sys.modules[module_name].__file__ == str(file):
        return sys.modules[module_name]
    if not any(each.is_relative_to(folder) for each in contestants) and str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that nothing in it takes the place of an installed module
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a module of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module
