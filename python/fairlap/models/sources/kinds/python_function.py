"""``module:function``: Python code of the user that returns a model with example inputs."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fairlap.errors import described
from fairlap.models.sources.contract import Bundle, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.torch_models import TorchSource, implementation_of_module, opened_module, require_no_sizes
from fairlap.request.source import Source

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class PythonFunction(SourceKind):
    title = "a Python function"

    @classmethod
    def recognises(cls, text: str) -> bool:
        return _NAME.fullmatch(text) is not None

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        return ()

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        require_no_sizes(source)
        return opened_module(_module_of(source), source, folder)

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        return implementation_of_module(folder, framework, lambda: _module_of(bundle.source))


def _module_of(source: Source) -> TorchSource:
    model, example = returned_by(source)
    if not _is_torch_module(model):
        raise SourceError(
            f"{source.text} returned a {type(model).__name__}; return a torch.nn.Module and its example inputs"
        )
    return TorchSource(model.eval(), named_inputs(model, example), Route("native"))


def returned_by(source: Source) -> tuple[Any, Any]:
    """Call the user's function, which is found in the current folder first, as ``python -m`` does."""
    module_name, _, path = source.path.partition(":")
    sys.path.insert(0, source.folder)
    try:
        found: Any = import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
        result = found()
    except (Exception, SystemExit) as error:
        raise SourceError(f"{source.text} raised {described(error)}") from error
    finally:
        sys.path.remove(source.folder)
    if not isinstance(result, tuple) or len(result) != 2:
        raise SourceError(f"{source.text} returned a {type(result).__name__}, not a pair of a model and example inputs")
    return result


def named_inputs(model: Any, example: Any) -> dict[str, Any]:
    """By the names of the arguments of ``forward``."""
    import torch

    given = example if isinstance(example, Mapping | tuple | list) else (example,)
    if not isinstance(given, Mapping):
        parameters = inspect.signature(model.forward).parameters.values()
        places = [
            each.name
            for each in parameters
            if each.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        ]
        if len(given) > len(places):
            raise SourceError(f"the model takes {len(places)} inputs, and the example has {len(given)}")
        given = dict(zip(places, given, strict=False))
    for name, each in given.items():
        if not isinstance(each, torch.Tensor):
            kind = type(each).__name__
            raise SourceError(f"the example input {name} is a {kind}, not a tensor", code="E_SOURCE_INPUTS")
    return dict(given)


def _is_torch_module(model: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


KIND = PythonFunction
