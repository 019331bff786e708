"""Import the callable that a name of the form MODULE:CALLABLE stands for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from fairlap.errors import InvalidRequest, described
from fairlap.suggestions import part_named


def imported_callable(target_name: str, *, here_last: bool = False) -> Callable[[], object]:
    """Import MODULE:CALLABLE, searching the current folder first, as ``python -m`` does, or after all others."""
    module_name, colon, path = target_name.partition(":")
    if not colon or not module_name or not path:
        raise InvalidRequest(f"{target_name!r} is not of the form MODULE:CALLABLE, such as math:factorial")
    if module_name.endswith(".py") or "/" in module_name:
        file = Path(module_name)
        where = "" if file.parent == Path() else f" in the folder {file.parent}"
        raise InvalidRequest(f"{module_name} is a file; name its module: {file.stem}:{path}{where}")
    if "" not in sys.path:
        sys.path.insert(len(sys.path) if here_last else 0, "")
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        raise InvalidRequest(f"cannot import {module_name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"importing {module_name} raised {described(error)}") from error
    found = part_named(found, path, module_name)
    if not callable(found):
        raise InvalidRequest(f"{target_name} is not callable (its type is {type(found).__name__})")
    return found
