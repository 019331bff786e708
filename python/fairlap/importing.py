"""Finding what a user names on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from fairlap.errors import WrongRequest, described


def imported_callable(target_name: str) -> Callable[[], object]:
    """What MODULE:CALLABLE names, looked up from the current folder as ``python -m`` does."""
    module_name, colon, path = target_name.partition(":")
    if not colon or not module_name or not path:
        raise WrongRequest(f"{target_name!r} is not of the form MODULE:CALLABLE, such as math:factorial")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        raise WrongRequest(f"cannot import {module_name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise WrongRequest(f"importing {module_name} raised {described(error)}") from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise WrongRequest(f"{module_name} has no {path!r}") from None
    if not callable(found):
        raise WrongRequest(f"{target_name} is a {type(found).__name__}, not a callable")
    return found
