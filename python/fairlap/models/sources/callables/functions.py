"""Functions of the user by ``module:function``, and where they are found."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fairlap.errors import InvalidRequest, described
from fairlap.models.sources.contract import SourceError
from fairlap.suggestions import part_named

SOURCES = "src"  # where many checkouts have their packages


def search_first(path: str) -> None:
    """Search the folder and its ``src`` before every other place, the current folder too."""
    folder = Path(path).absolute()
    if not folder.is_dir():
        raise InvalidRequest(f"path={path} is not a folder")
    sys.path[:0] = [*(str(each) for each in (folder, folder / SOURCES) if each.is_dir()), ""]


def require_from(path: str, module: str) -> None:
    """Refuse a module from another place.

    An editable installation may put itself before every path, and both contestants would be one.
    """
    found = sys.modules[module]
    places = [found.__file__] if found.__file__ else list(found.__path__)
    if not any(Path(place).resolve().is_relative_to(Path(path).resolve()) for place in places):
        raise InvalidRequest(f"{module} was imported from {places[0]}, not from {path}; is it installed as editable?")


def function_in(folder: str, name: str) -> Callable[..., Any]:
    """Import ``module:function``, which is found in this folder first, as ``python -m`` does."""
    module, _, path = name.partition(":")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = part_named(import_module(module), path, module)
    except InvalidRequest as error:
        raise SourceError(str(error), code="E_REFERENCE") from None
    except (Exception, SystemExit) as error:
        raise SourceError(f"{name} cannot be imported: {described(error)}", code="E_REFERENCE") from error
    if not callable(found):
        raise SourceError(f"{name} is not callable (its type is {type(found).__name__})", code="E_REFERENCE")
    function: Callable[..., Any] = found
    return function


def function_of_checkout(checkout: str, name: str, folder: str) -> Callable[..., Any]:
    """Import it from a contestant's checkout, although modules of the same names were imported from the folder."""
    for module, found in list(sys.modules.items()):
        file = getattr(found, "__file__", None)
        if file and Path(file).parent.resolve().is_relative_to(Path(folder).resolve()):
            del sys.modules[module]
    search_first(checkout)
    function = function_in(str(Path(checkout).absolute()), name)
    require_from(checkout, name.partition(":")[0])
    return function


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """Names of those that take an argument by its place; none where the function does not show them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in by_place]


def sizes_of(draw: Callable[..., Any]) -> Mapping[str, int]:
    """Parameters of a function that draws which have whole numbers as defaults: the sizes of what it draws."""
    try:
        parameters = inspect.signature(draw).parameters
    except (TypeError, ValueError):
        return {}
    return {name: each.default for name, each in parameters.items() if type(each.default) is int}
